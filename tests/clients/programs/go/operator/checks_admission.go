package main

import (
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"clients/expect"
)

// definition: envtest waited for discovery; the conditions and the mapping are there.
func definition(c *check) {
	expect.NoError(apiextensions.AddToScheme(c.Scheme()))
	found := &apiextensions.CustomResourceDefinition{}
	expect.NoError(c.Get(c, client.ObjectKey{Name: "shops.operator.example.com"}, found))
	expect.Equal("stored versions", found.Status.StoredVersions, []string{"v1"})
	for _, condition := range found.Status.Conditions {
		if condition.Type == apiextensions.Established || condition.Type == apiextensions.NamesAccepted {
			expect.Equal(string(condition.Type), condition.Status, apiextensions.ConditionTrue)
		}
	}
	mapping := expect.OK(c.leader.GetRESTMapper().RESTMapping(schema.GroupKind{Group: version.Group, Kind: "Shop"}))
	expect.Equal("resource", mapping.Resource, version.WithResource("shops"))
	_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: version.Group, Kind: "Market"})
	expect.Refused(err, expect.AnyReason, `no matches for kind "Market" in group "operator.example.com"`)
}

func schemaDefaults(c *check) {
	shop := c.shop("corner", "blue")
	expect.NoError(c.Create(c, shop))
	expect.Equal("replicas", *shop.Spec.Replicas, 1)
	expect.Equal("limit", *shop.Spec.Limit, 10)
	expect.Equal("generation", shop.Generation, 1)
}

func mutatingWebhook(c *check) {
	shop := c.shop("corner", "")
	expect.NoError(c.Create(c, shop))
	expect.Equal("colour", shop.Spec.Colour, "red")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"colour": null}}`))
	expect.NoError(c.Patch(c, shop, patch))
	expect.Equal("colour after a patch", shop.Spec.Colour, "red")
}

func validatingWebhook(c *check) {
	err := c.Create(c, c.shop("corner", "black"))
	expect.Refused(err, apierrors.IsInvalid, `admission webhook "validate.operator.example.com" denied the request: `+
		`Shop.operator.example.com "corner" is invalid: spec.colour: Unsupported value: "black": supported values: "blue", "green", "red"`)
	details := err.(apierrors.APIStatus).Status().Details
	expect.Equal("field", details.Causes[0].Field, "spec.colour")
	expect.Equal("name", details.Name, "corner")
	expect.Refused(c.Create(c, c.shop("corner", "pink")), apierrors.IsForbidden,
		`admission webhook "validate.operator.example.com" denied the request: pink is sold out`)
}

func webhookWarnings(c *check) {
	expect.NoError(c.Create(c, c.shop("corner", "grey")))
	c.warnings.Lock()
	defer c.warnings.Unlock()
	expect.Equal("warned", slices.Contains(c.warnings.texts, "grey shops are hard to find"), true)
}

func updateWithOldObject(c *check) {
	shop := c.shop("corner", "blue")
	shop.Spec.Settings = "small"
	expect.NoError(c.Create(c, shop))
	before := copied(shop)
	shop.Spec.Settings = "large"
	expect.Refused(c.Patch(c, shop, client.MergeFrom(before)), apierrors.IsForbidden,
		`admission webhook "validate.operator.example.com" denied the request: the settings were small and stay`)
}

func deniedDeletion(c *check) {
	shop := c.shop("corner", "blue")
	shop.Annotations = map[string]string{protected: "yes"}
	expect.NoError(c.Create(c, shop))
	expect.Refused(c.Delete(c, shop), apierrors.IsForbidden,
		`admission webhook "validate.operator.example.com" denied the request: the shop is protected`)
	err := c.DeleteAllOf(c, &Shop{}, client.InNamespace(c.namespace))
	expect.Refused(err, apierrors.IsForbidden, "the shop is protected")
	expect.NoError(c.Patch(c, shop, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"annotations": null}}`))))
	expect.NoError(c.DeleteAllOf(c, &Shop{}, client.InNamespace(c.namespace)))
	c.gone(&Shop{}, "corner")
}

func schemaAndRules(c *check) {
	shop := c.shop("corner", "blue")
	many, some := int32(101), int32(11)
	shop.Spec.Replicas = &many
	expect.Refused(c.Create(c, shop), apierrors.IsInvalid, `Shop.operator.example.com "corner" is invalid: `+
		`[spec.replicas: Invalid value: 101: spec.replicas in body should be less than or equal to 100, `)
	shop = c.shop("corner", "blue")
	shop.Spec.Replicas = &some
	expect.Refused(c.Create(c, shop), apierrors.IsInvalid,
		`Shop.operator.example.com "corner" is invalid: spec: Invalid value: a shop has a limit`)
}

// conversion: the older version is converted by the webhook, in lists and writes as well.
func conversionWebhook(c *check) {
	old := &OldShop{ObjectMeta: metav1.ObjectMeta{Name: "corner", Namespace: c.namespace}, Spec: OldShopSpec{Paint: "green"}}
	expect.NoError(c.Create(c, old))
	shop := &Shop{}
	expect.NoError(c.Get(c, c.key("corner"), shop))
	expect.Equal("colour", shop.Spec.Colour, "green")
	expect.NoError(c.Get(c, c.key("corner"), old))
	before := old.DeepCopyObject().(*OldShop)
	old.Spec.Paint = "blue"
	expect.NoError(c.Patch(c, old, client.MergeFrom(before)))
	expect.NoError(c.Get(c, c.key("corner"), shop))
	expect.Equal("the new colour", shop.Spec.Colour, "blue")
	for _, field := range shop.ManagedFields {
		if field.APIVersion != version.String() && field.APIVersion != oldVersion.String() {
			expect.Failf("fields of version %s", field.APIVersion)
		}
	}
	expect.NoError(c.Delete(c, shop)) // while its fields of the older version can be converted
	c.gone(shop, "corner")
}

// dryRuns: the webhooks are called, and nothing is stored.
func dryRuns(c *check) {
	dry := client.NewDryRunClient(c.Client)
	shop := c.shop("corner", "")
	expect.NoError(dry.Create(c, shop))
	expect.Equal("colour", shop.Spec.Colour, "red")
	expect.Equal("dry run seen by the webhook", shop.Annotations["operator.example.com/dry-run"], "true")
	expect.Refused(c.Get(c, c.key("corner"), shop), apierrors.IsNotFound, `shops.operator.example.com "corner" not found`)
	expect.Refused(dry.Create(c, c.shop("corner", "pink")), apierrors.IsForbidden, "pink is sold out")
}

func fieldValidation(c *check) {
	strict := client.WithFieldValidation(c.Client, client.FieldValidation(metav1.FieldValidationStrict))
	shop := c.unstructured("corner", map[string]any{"colour": "blue", "color": "blue"})
	expect.Refused(strict.Create(c, shop), apierrors.IsBadRequest,
		`Shop in version "v1" cannot be handled as a Shop: strict decoding error: unknown field "spec.color"`)
	expect.NoError(c.Create(c, shop))
	_, there := shop.Object["spec"].(map[string]any)["color"]
	expect.Equal("the unknown field is stored", there, false)
	c.warnings.Lock()
	defer c.warnings.Unlock()
	warned := func(text string) bool { return strings.Contains(text, `unknown field "spec.color"`) }
	expect.Equal("warned", slices.ContainsFunc(c.warnings.texts, warned), true)
}
