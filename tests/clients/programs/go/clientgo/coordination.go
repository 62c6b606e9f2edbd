package main

import (
	"context"
	"sync/atomic"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"clients/expect"
)

func coreEvents(c *check) {
	settings := c.configMap("settings", nil, nil)
	broadcaster := record.NewBroadcaster(record.WithContext(c))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.client.CoreV1().Events(c.namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "tester", Host: "here"})
	list := func() []v1.Event {
		selector := fields.Set{"involvedObject.name": "settings", "reason": "Changed", "type": "Warning"}.AsSelector().String()
		return expect.OK(c.client.CoreV1().Events(c.namespace).List(c, metav1.ListOptions{FieldSelector: selector})).Items
	}
	recorder.Event(settings, v1.EventTypeWarning, "Changed", "it changed")
	expect.Until(c, "an event", func() bool { return len(list()) == 1 })
	recorder.Event(settings, v1.EventTypeWarning, "Changed", "it changed")
	recorder.Event(settings, v1.EventTypeNormal, "Seen", "it was seen")
	expect.Until(c, "its count", func() bool { return list()[0].Count == 2 })
	found := list()[0]
	expect.Equal("object", found.InvolvedObject.UID, settings.UID)
	expect.Equal("component", found.ReportingController, "tester")
	bad := &v1.Event{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, InvolvedObject: v1.ObjectReference{Namespace: "other"}}
	_, err := c.client.CoreV1().Events(c.namespace).Create(c, bad, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace")
}

func newEvents(c *check) {
	settings := c.configMap("settings", nil, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.client.EventsV1()})
	defer broadcaster.Shutdown()
	expect.NoError(broadcaster.StartRecordingToSinkWithContext(c))
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/tester")
	list := func() []eventsv1.Event {
		return expect.OK(c.client.EventsV1().Events(c.namespace).List(c, metav1.ListOptions{FieldSelector: "regarding.name=settings"})).Items
	}
	recorder.Eventf(settings, nil, v1.EventTypeNormal, "Changed", "Changing", "it changed %d times", 1)
	expect.Until(c, "an event", func() bool { return len(list()) == 1 })
	recorder.Eventf(settings, nil, v1.EventTypeNormal, "Changed", "Changing", "it changed %d times", 1)
	expect.Until(c, "a series", func() bool { return list()[0].Series != nil && list()[0].Series.Count >= 2 })
	old := expect.OK(c.client.CoreV1().Events(c.namespace).Get(c, list()[0].Name, metav1.GetOptions{}))
	expect.Equal("the same event of the older API", old.Message, "it changed 1 times")
	_, err := c.client.EventsV1().Events(c.namespace).Create(c,
		&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "eventTime: Required value")
}

func leaderElection(c *check) {
	elect := func(name string, leading, stopped *atomic.Int32) (context.CancelFunc, *leaderelection.LeaderElector) {
		lock := expect.OK(resourcelock.New(resourcelock.LeasesResourceLock, c.namespace, "leader", c.client.CoreV1(),
			c.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name}))
		ctx, cancel := context.WithCancel(c)
		elector := expect.OK(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leading.Add(1) },
				OnStoppedLeading: func() { stopped.Add(1) },
			},
		}))
		go elector.Run(ctx)
		return cancel, elector
	}
	var first, second, stopped atomic.Int32
	stopFirst, _ := elect("first", &first, &stopped)
	expect.Until(c, "the first leads", func() bool { return first.Load() == 1 })
	stopSecond, follower := elect("second", &second, &stopped)
	defer stopSecond()
	expect.Until(c, "the second follows", func() bool { return follower.GetLeader() == "first" })
	expect.Equal("there is one leader", second.Load(), 0)
	stopFirst()
	expect.Until(c, "the second leads", func() bool { return second.Load() == 1 && stopped.Load() == 1 })
	lease := expect.OK(c.client.CoordinationV1().Leases(c.namespace).Get(c, "leader", metav1.GetOptions{}))
	expect.Equal("holder", *lease.Spec.HolderIdentity, "second")
	expect.Equal("transitions", *lease.Spec.LeaseTransitions, 1)
	renewed := lease.Spec.RenewTime.Time
	expect.Until(c, "it is renewed", func() bool {
		lease := expect.OK(c.client.CoordinationV1().Leases(c.namespace).Get(c, "leader", metav1.GetOptions{}))
		return lease.Spec.RenewTime.After(renewed)
	})
}

func evictions(c *check) {
	c.serviceAccount()
	pods := c.client.CoreV1().Pods(c.namespace)
	labels := map[string]string{"app": "web"}
	no := false
	for _, name := range []string{"a", "b"} {
		expect.OK(pods.Create(c, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       v1.PodSpec{AutomountServiceAccountToken: &no, NodeName: "node", Containers: []v1.Container{{Name: "web", Image: "web:1"}}},
		}, metav1.CreateOptions{}))
	}
	one := intstr.FromInt32(1)
	budgets := c.client.PolicyV1().PodDisruptionBudgets(c.namespace)
	budget := expect.OK(budgets.Create(c, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{}))
	for _, name := range []string{"a", "b"} {
		pod := expect.OK(pods.Get(c, name, metav1.GetOptions{}))
		pod.Status.Phase = v1.PodRunning
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		expect.OK(pods.UpdateStatus(c, pod, metav1.UpdateOptions{}))
	}
	evict := func(name string, options *metav1.DeleteOptions) error {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}, DeleteOptions: options}
		eviction.APIVersion, eviction.Kind = "policy/v1", "Eviction"
		request := c.client.CoreV1().RESTClient().Post().Namespace(c.namespace).Resource("pods").Name(name).SubResource("eviction")
		// `EvictV1` would repeat the request ten times, each time after the ten seconds of `Retry-After`.
		return request.MaxRetries(0).Body(eviction).Do(c).Error()
	}
	expect.Refused(evict("a", nil), apierrors.IsTooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget.")
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2,
	}
	expect.OK(budgets.UpdateStatus(c, budget, metav1.UpdateOptions{}))
	expect.NoError(evict("a", &metav1.DeleteOptions{DryRun: []string{"All"}}))
	expect.NoError(evict("a", nil))
	err := evict("b", nil)
	expect.Refused(err, apierrors.IsTooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget.")
	expect.Equal("cause", apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), true)
	cause, _ := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	expect.Equal("cause", cause.Message, "The disruption budget web does not allow evicting pods currently")
	after := expect.OK(budgets.Get(c, "web", metav1.GetOptions{}))
	expect.Equal("disruptions allowed", after.Status.DisruptionsAllowed, 0)
	_, there := after.Status.DisruptedPods["a"]
	expect.Equal("the disrupted pod", there, true)
	expect.Refused(evict("none", nil), apierrors.IsNotFound, `pods "none" not found`)
}

func accessReviews(c *check) {
	reviews := c.client.AuthorizationV1()
	self := expect.OK(reviews.SelfSubjectAccessReviews().Create(c, &authorization.SelfSubjectAccessReview{
		Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{
			Namespace: c.namespace, Verb: "delete", Group: "apps", Resource: "deployments",
		}},
	}, metav1.CreateOptions{}))
	expect.Equal("allowed", self.Status.Allowed, true)
	admin := expect.OK(reviews.SubjectAccessReviews().Create(c, &authorization.SubjectAccessReview{
		Spec: authorization.SubjectAccessReviewSpec{
			User: "someone", Groups: []string{"system:masters"},
			NonResourceAttributes: &authorization.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		},
	}, metav1.CreateOptions{}))
	expect.Equal("an administrator", admin.Status.Allowed, true)
	expect.OK(reviews.LocalSubjectAccessReviews(c.namespace).Create(c, &authorization.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace},
		Spec: authorization.SubjectAccessReviewSpec{
			User: "someone", Groups: []string{"system:masters"},
			ResourceAttributes: &authorization.ResourceAttributes{Namespace: c.namespace, Verb: "get", Resource: "pods"},
		},
	}, metav1.CreateOptions{}))
	rules := expect.OK(reviews.SelfSubjectRulesReviews().Create(c, &authorization.SelfSubjectRulesReview{
		Spec: authorization.SelfSubjectRulesReviewSpec{Namespace: c.namespace},
	}, metav1.CreateOptions{}))
	expect.Equal("rules", len(rules.Status.ResourceRules) > 0, true)
	me := expect.OK(c.client.AuthenticationV1().SelfSubjectReviews().Create(c, &authentication.SelfSubjectReview{}, metav1.CreateOptions{}))
	expect.Equal("the user has a name", me.Status.UserInfo.Username != "", true)
}

func invalidReviews(c *check) {
	reviews := c.client.AuthorizationV1()
	_, err := reviews.SelfSubjectAccessReviews().Create(c, &authorization.SelfSubjectAccessReview{}, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
}

func tokenReviews(c *check) {
	unknown := expect.OK(c.client.AuthenticationV1().TokenReviews().Create(c, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: "no token"},
	}, metav1.CreateOptions{}))
	expect.Equal("an unknown token", unknown.Status.Authenticated, false)
}
