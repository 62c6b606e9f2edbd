// @kubernetes/client-node: the steps that every client takes, see `tests/clients/test_clients.py`.
import * as k8s from "@kubernetes/client-node";

const namespace = process.argv[2];
const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const merge = k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch);

async function codeOf(call) {
  try {
    await call;
  } catch (error) {
    return [error.code, JSON.parse(error.body).reason];
  }
}

const settings = { metadata: { name: "settings", labels: { app: "web" } }, data: { colour: "red" } };
const created = await core.createNamespacedConfigMap({ namespace, body: settings });
const result = { created: created.data };
result.duplicate = await codeOf(core.createNamespacedConfigMap({ namespace, body: settings }));
result.missing = await codeOf(core.readNamespacedConfigMap({ namespace, name: "other" }));
const listed = await core.listNamespacedConfigMap({ namespace, labelSelector: "app=web" });
result.listed = listed.items.map((item) => item.metadata.name);
result.watched = [];
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const query = { resourceVersion: listed.metadata.resourceVersion };
const watching = new Promise((resolve, reject) => {
  const seen = (type, item) => {
    result.watched.push([type, item.metadata.name]);
    if (type === "DELETED") resolve();
  };
  new k8s.Watch(config).watch(path, query, seen, reject).then((controller) => (watching.stop = controller), reject);
});
const body = { data: { colour: "blue", size: "1" } };
result.patched = (await core.patchNamespacedConfigMap({ namespace, name: "settings", body }, merge)).data;
await core.deleteNamespacedConfigMap({ namespace, name: "settings" });
await watching;
await apps.createNamespacedDeployment({ namespace, body: JSON.parse(process.env.DEPLOYMENT) });
await apps.patchNamespacedDeploymentScale({ namespace, name: "web", body: { spec: { replicas: 5 } } }, merge);
result.scaled = (await apps.readNamespacedDeployment({ namespace, name: "web" })).spec.replicas;
const kind = { group: "clients.example.com", version: "v1", namespace, plural: "shops" };
const shop = { apiVersion: "clients.example.com/v1", kind: "Shop", metadata: { name: "corner" }, spec: { size: 3 } };
await custom.createNamespacedCustomObject({ ...kind, body: shop });
result.custom = (await custom.getNamespacedCustomObject({ ...kind, name: "corner" })).spec;
const bad = { ...shop, metadata: { name: "b" }, spec: { size: "x" } };
result.invalid = await codeOf(custom.createNamespacedCustomObject({ ...kind, body: bad }));
console.log(JSON.stringify(result));
process.exit(0);
