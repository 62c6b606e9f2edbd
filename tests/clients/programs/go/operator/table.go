package main

// checks in their order: the last four stop the first manager, and then remove what it served.
var checks = []struct {
	name string
	body func(*check)
}{
	{"definition", definition},
	{"defaults of the schema", schemaDefaults},
	{"mutating webhook", mutatingWebhook},
	{"validating webhook", validatingWebhook},
	{"warnings of webhooks", webhookWarnings},
	{"update with the old object", updateWithOldObject},
	{"denied deletion", deniedDeletion},
	{"schema and rules", schemaAndRules},
	{"conversion webhook", conversionWebhook},
	{"dry run", dryRuns},
	{"field validation", fieldValidation},
	{"owned objects", ownedObjects},
	{"drift", drift},
	{"status", status},
	{"generations", generations},
	{"scale subresource", scaleSubresource},
	{"events", recordedEvents},
	{"finalizers", finalizers},
	{"garbage collection", garbageCollection},
	{"optimistic locks", optimisticLocks},
	{"server-side apply", serverSideApply},
	{"unstructured client", unstructuredClient},
	{"watches", watches},
	{"field indexes", fieldIndexes},
	{"metadata only", metadataOnly},
	{"cache with selectors", cacheSelectors},
	{"metrics", metrics},
	{"health probes", healthProbes},
	{"leader election", leaderElection},
	{"unreachable webhooks", unreachableWebhooks},
	{"failover", failover},
	{"clean", clean},
}
