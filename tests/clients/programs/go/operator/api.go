package main

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"clients/expect"
)

var (
	version    = schema.GroupVersion{Group: "operator.example.com", Version: "v1"}
	oldVersion = schema.GroupVersion{Group: "operator.example.com", Version: "v1alpha1"}
)

// Shop is the kind of the operator, in the version that is stored.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShopSpec   `json:"spec,omitempty"`
	Status            ShopStatus `json:"status,omitempty"`
}

type ShopSpec struct {
	Colour   string `json:"colour,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	Limit    *int32 `json:"limit,omitempty"`
	Settings string `json:"settings,omitempty"` // name of a ConfigMap that the shop does not own
}

type ShopStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	SecretVersion      string             `json:"secretVersion,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}

// OldShop is the kind in its older version, which has another name for the colour.
type OldShop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldShopSpec `json:"spec,omitempty"`
}

type OldShopSpec struct {
	Paint    string `json:"paint,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
}

func (s *Shop) Hub() {}

func (s *OldShop) ConvertTo(hub conversion.Hub) error {
	shop := hub.(*Shop)
	shop.ObjectMeta = *s.ObjectMeta.DeepCopy()
	shop.Spec = ShopSpec{Colour: s.Spec.Paint, Replicas: s.Spec.Replicas}
	return nil
}

func (s *OldShop) ConvertFrom(hub conversion.Hub) error {
	shop := hub.(*Shop)
	s.ObjectMeta = *shop.ObjectMeta.DeepCopy()
	s.Spec = OldShopSpec{Paint: shop.Spec.Colour, Replicas: shop.Spec.Replicas}
	return nil
}

// copied returns a deep copy, without generated code.
func copied[T any](object *T) *T {
	result := new(T)
	expect.NoError(json.Unmarshal(expect.OK(json.Marshal(object)), result))
	return result
}

func (s *Shop) DeepCopyObject() runtime.Object     { return copied(s) }
func (s *ShopList) DeepCopyObject() runtime.Object { return copied(s) }
func (s *OldShop) DeepCopyObject() runtime.Object  { return copied(s) }

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	expect.NoError(clientscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(version, &Shop{}, &ShopList{})
	scheme.AddKnownTypeWithName(oldVersion.WithKind("Shop"), &OldShop{})
	metav1.AddToGroupVersion(scheme, version)
	metav1.AddToGroupVersion(scheme, oldVersion)
	return scheme
}
