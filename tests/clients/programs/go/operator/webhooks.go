package main

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const protected = "operator.example.com/protected" // annotation of shops that must not be deleted

// defaulter is the mutating webhook.
type defaulter struct{}

func (defaulter) Default(ctx context.Context, shop *Shop) error {
	if shop.Spec.Colour == "" {
		shop.Spec.Colour = "red"
	}
	if request, err := admission.RequestFromContext(ctx); err == nil && request.DryRun != nil && *request.DryRun {
		if shop.Annotations == nil {
			shop.Annotations = map[string]string{}
		}
		shop.Annotations["operator.example.com/dry-run"] = "true"
	}
	return nil
}

// validator is the validating webhook. It denies with a Status of the API and with a plain error.
type validator struct{}

func (validator) ValidateCreate(_ context.Context, shop *Shop) (admission.Warnings, error) {
	switch shop.Spec.Colour {
	case "black":
		return nil, apierrors.NewInvalid(version.WithKind("Shop").GroupKind(), shop.Name, field.ErrorList{
			field.NotSupported(field.NewPath("spec", "colour"), shop.Spec.Colour, []string{"blue", "green", "red"}),
		})
	case "pink":
		return nil, errors.New("pink is sold out")
	case "grey":
		return admission.Warnings{"grey shops are hard to find"}, nil
	}
	return nil, nil
}

func (v validator) ValidateUpdate(ctx context.Context, before, shop *Shop) (admission.Warnings, error) {
	if before.Spec.Settings != "" && shop.Spec.Settings != before.Spec.Settings {
		return nil, errors.New("the settings were " + before.Spec.Settings + " and stay")
	}
	return v.ValidateCreate(ctx, shop)
}

func (validator) ValidateDelete(_ context.Context, shop *Shop) (admission.Warnings, error) {
	if shop.Annotations[protected] != "" {
		return nil, errors.New("the shop is protected")
	}
	return nil, nil
}

func addWebhooks(manager ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(manager, &Shop{}).WithDefaulter(defaulter{}).WithValidator(validator{}).Complete()
}
