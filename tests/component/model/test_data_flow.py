"""Data flow between resources: validation at build time, description, and order."""

from __future__ import annotations

from base64 import b64decode
from functools import partial
from traceback import format_exception
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import Reason
from ocf.component.model.data_flow import DataFlow
from ocf.component.status.results import Action
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.editors import ObjectMetaEditor
from ocf.errors import BuildError, DataNotExtractedError, HandlerError, ReconcileError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.quantity import Quantity
from ocf.primitives import configmap, deployment, hpa, secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubernetes.client import V1Secret

    from tests.component.conftest import Env, StaticKind


def read_entry(live: V1Secret) -> str | bytes:
    assert live.data is not None
    return live.data["password"]


def builder(*resources: Any) -> component.Builder:
    made = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        made.with_resource(resource)
    return made


def problems_of(made: component.Builder) -> tuple[str, ...]:
    with pytest.raises(BuildError) as caught:
        made.build()
    return caught.value.problems


@pytest.fixture
def host() -> Data[str]:
    return Data[str]("db-host")


@pytest.fixture
def maker(config_map: Callable[..., StaticKind], host: Data[str]) -> Callable[..., Any]:
    """Make a ConfigMap that fills the cell with its `host`."""

    def make(name: str = "database", value: str = "db.shop.svc") -> Any:
        return config_map(name, host=value).extract_into(host, lambda live: str(live.data["host"])).build()

    return make


def uid_of(live: Any) -> str:
    return str(live.metadata.uid)


def reader(base: Manifest, *cells: Data[Any], optional: bool = False) -> deployment.Builder:
    """Make a Deployment that writes the cells to annotations."""

    def note(m: deployment.Mutator) -> None:
        for cell in cells:
            value = cell.get() if optional else cell.require()
            if value is not None:
                m.edit_object_metadata(partial(ObjectMetaEditor.ensure_annotation, key=cell.name, value=value))

    made = deployment.Builder(base).with_mutation(deployment.Mutation("note", note))
    return made.with_optional_data(*cells) if optional else made.with_data_guard(*cells)


class TestValidation:
    def test_a_read_needs_an_earlier_producer(
        self, web_base: Manifest, host: Data[str], maker: Callable[..., Any]
    ) -> None:
        web = reader(web_base, host).build()
        problem = 'resource "apps/v1/Deployment/shop/web" reads data "db-host" but no earlier resource produces it'
        assert problems_of(builder(web)) == (problem,)
        assert problems_of(builder(web, maker())) == (problem,)
        builder(maker(), web).build()

    def test_so_does_an_optional_read(self, web_base: Manifest, host: Data[str]) -> None:
        (problem,) = problems_of(builder(reader(web_base, host, optional=True).build()))
        assert problem.endswith("but no earlier resource produces it")

    def test_a_resource_does_not_feed_itself(self, config_map: Callable[..., StaticKind], host: Data[str]) -> None:
        selfish = config_map().extract_into(host, lambda _live: "x").with_data_guard(host).build()
        assert problems_of(builder(selfish)) == (
            'resource "v1/ConfigMap/shop/settings" reads data "db-host" but no earlier resource produces it',
        )

    def test_a_read_only_resource_produces(
        self, web_base: Manifest, host: Data[str], maker: Callable[..., Any]
    ) -> None:
        made = component.Builder("web", condition_type="WebReady").with_resource(maker(), read_only=True)
        made.with_resource(reader(web_base, host).build()).build()

    @pytest.mark.parametrize(
        "options",
        [{"gated_by": BooleanGate(False)}, {"delete_when": True}, {"orphan_when": True}],
        ids=["gate off", "deleted", "let go"],
    )
    def test_a_resource_that_is_not_reached_does_not(
        self, web_base: Manifest, host: Data[str], maker: Callable[..., Any], options: dict[str, Any]
    ) -> None:
        made = component.Builder("web", condition_type="WebReady").with_resource(maker(), **options)
        assert len(problems_of(made.with_resource(reader(web_base, host).build()))) == 1

    def test_a_resource_that_is_not_reached_needs_nothing(self, web_base: Manifest, host: Data[str]) -> None:
        web = reader(web_base, host).build()
        made = component.Builder("web", condition_type="WebReady").with_resource(web, delete_when=True)
        made.build()

    def test_two_cells_of_one_name_are_rejected(
        self, config_map: Callable[..., StaticKind], host: Data[str], maker: Callable[..., Any]
    ) -> None:
        double = config_map().extract_into(Data[str]("db-host"), lambda _live: "x").build()
        (problem,) = problems_of(builder(maker(), double))
        who, _, rule = problem.partition(", but ")
        assert who == f'resource "v1/ConfigMap/shop/settings" in component "web" declares data "{host.name}"'
        assert rule == "a distinct cell already uses that name; data names must be unique within a component"

    def test_a_custom_resource_must_not_declare_none(self) -> None:
        class Own:
            key = ObjectKey("v1", "ConfigMap", "own", "shop")
            identity = str(key)
            produced_data = (None,)

            def render(self, **_: Any) -> Manifest:
                return {}

            def extract_data(self, live: Manifest) -> None:
                """Fill nothing."""

        own: Any = Own()
        problem = 'resource "v1/ConfigMap/shop/own" in component "web" declares None as a data cell'
        assert problems_of(builder(own)) == (problem,)

    def test_every_problem_is_reported(self, web_base: Manifest, host: Data[str]) -> None:
        assert len(problems_of(builder(reader(web_base, host, Data[str]("port")).build()))) == 2


class TestDataTopology:
    def test_lists_producers_and_readers_of_each_cell(
        self, web_base: Manifest, hpa_base: Manifest, host: Data[str], maker: Callable[..., Any]
    ) -> None:
        scaler = hpa.Builder(hpa_base).with_optional_data(host).build()
        subject = builder(maker("a"), maker("b"), reader(web_base, host).build(), scaler).build()
        assert subject.data_topology == (
            DataFlow(
                data="db-host",
                producers=("v1/ConfigMap/shop/a", "v1/ConfigMap/shop/b"),
                guarded=("apps/v1/Deployment/shop/web",),
                optional=("autoscaling/v2/HorizontalPodAutoscaler/shop/web",),
            ),
        )

    def test_a_cell_both_guarded_and_optional_is_guarded(
        self, web_base: Manifest, host: Data[str], maker: Callable[..., Any]
    ) -> None:
        for both in (
            deployment.Builder(web_base).with_optional_data(host).with_data_guard(host).build(),
            deployment.Builder(web_base).with_data_guard(host).with_optional_data(host).build(),
        ):
            (flow,) = builder(maker(), both).build().data_topology
            assert (flow.guarded, flow.optional) == (("apps/v1/Deployment/shop/web",), ())

    def test_lists_a_cell_without_readers(self, maker: Callable[..., Any]) -> None:
        assert builder(maker()).build().data_topology == (
            DataFlow(data="db-host", producers=("v1/ConfigMap/shop/database",)),
        )

    def test_leaves_out_resources_that_are_not_reached(self, maker: Callable[..., Any]) -> None:
        made = component.Builder("web", condition_type="WebReady").with_resource(maker(), delete_when=True)
        assert made.build().data_topology == ()


class TestFlow:
    async def test_the_last_producer_wins(
        self, env: Env, web_base: Manifest, host: Data[str], maker: Callable[..., Any]
    ) -> None:
        subject = builder(maker("a", "first"), maker("b", "last"), reader(web_base, host).build()).build()
        await env.reconcile(subject)
        assert (await env.cluster.get(env.web))["metadata"]["annotations"] == {"db-host": "last"}

    async def test_an_empty_cell_blocks_and_is_named(
        self, env: Env, web_base: Manifest, config_map: Callable[..., StaticKind], host: Data[str]
    ) -> None:
        """The resource's own guard is evaluated only once the data is available."""
        port = Data[str]("db-port")
        absent = config_map("absent").extract_into(host, lambda live: live.data["host"])
        absent = absent.extract_into(port, lambda live: live.data["port"])

        def crash(_base: Any) -> StatusReport[GuardStatus]:
            raise AssertionError("asked")

        web = reader(web_base, host, port).with_guard(crash).build()
        made = component.Builder("web", condition_type="WebReady")
        made.with_resource(absent.build(), read_only=True, ignore_if_absent=True).with_resource(web)
        result = await env.reconcile(made.build())
        assert (result.condition.reason, result.condition.message) == (
            Reason.BLOCKED,
            'Deployment web: waiting for data "db-host", "db-port"',
        )
        assert result.outcomes[-1].action is Action.BLOCKED

    async def test_a_value_does_not_outlive_its_reconcile(
        self, env: Env, web_base: Manifest, host: Data[str], config_map: Callable[..., StaticKind]
    ) -> None:
        """Nor does one that was seeded before."""
        database = config_map("database", host="x").extract_into(host, lambda live: str(live.data["host"])).build()
        made = component.Builder("web", condition_type="WebReady")
        made.with_resource(database, read_only=True, ignore_if_absent=True)
        subject = made.with_resource(reader(web_base, host).build()).build()
        key = ObjectKey("v1", "ConfigMap", "database", "shop")
        await env.create(key, data={"host": "x"})
        assert (await env.reconcile(subject)).outcomes[-1].action is Action.CREATED
        await env.cluster.delete(key)
        with host.seeded("seeded"):
            assert (await env.reconcile(subject)).outcomes[-1].action is Action.BLOCKED

    async def test_a_failing_extraction_names_cell_and_resource_and_stops(
        self, env: Env, web: deployment.Resource, config_map: Callable[..., StaticKind], host: Data[str]
    ) -> None:
        broken = config_map().extract_into(host, lambda live: str(live.data["host"])).build()
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(builder(broken, web).build())
        assert caught.value.problem.startswith(
            'failed to extract data from resource v1/ConfigMap/shop/settings: extract data "db-host": '
        )
        assert isinstance(caught.value.__cause__, HandlerError)
        assert (await env.condition())["reason"] == "Error"
        assert not await env.exists(env.web)

    async def test_a_failing_guard_is_named_and_stops(
        self, env: Env, web: deployment.Resource, config_map: Callable[..., StaticKind]
    ) -> None:
        def crash(_base: Any) -> StatusReport[GuardStatus]:
            raise RuntimeError("no idea")

        guarded = config_map().with_guard(crash).build()
        with pytest.raises(ReconcileError, match="failed to evaluate guard for resource v1/ConfigMap/shop/settings: "):
            await env.reconcile(builder(guarded, web).build())
        assert (await env.condition())["reason"] == "Error"
        assert not await env.exists(env.web)

    async def test_an_unguarded_read_of_an_empty_cell_fails_and_names_it(self, env: Env, web_base: Manifest) -> None:
        undeclared = Data[str]("db-host")

        def note(m: deployment.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("host", undeclared.require()))

        web = deployment.Builder(web_base).with_mutation(deployment.Mutation("note", note)).build()
        with pytest.raises(ReconcileError, match='data "db-host": data not extracted') as caught:
            await env.reconcile(builder(web).build())
        cause: BaseException | None = caught.value
        while cause is not None and not isinstance(cause, DataNotExtractedError):
            cause = cause.__cause__
        assert cause is not None


class TestSuspended:
    @pytest.fixture
    def subject(self, web_base: Manifest, host: Data[str], maker: Callable[..., Any]) -> Callable[..., Any]:
        def build(*, suspended: bool) -> component.Component:
            return builder(maker(), reader(web_base, host).build()).suspend(suspended).build()

        return build

    async def test_a_resource_that_cannot_be_suspended_is_read_for_its_data_and_not_applied(
        self, env: Env, subject: Callable[..., Any]
    ) -> None:
        await env.reconcile(subject(suspended=False))
        database = ObjectKey("v1", "ConfigMap", "database", "shop")
        live = await env.change(database, data={"host": "changed"})
        await env.reconcile(subject(suspended=True))
        web = await env.cluster.get(env.web)
        assert (web["spec"]["replicas"], web["metadata"]["annotations"]["db-host"]) == (0, "changed")
        assert await env.cluster.get(database) == live

    async def test_a_read_only_resource_is_read_for_its_data(
        self, env: Env, web_base: Manifest, host: Data[str], maker: Callable[..., Any]
    ) -> None:
        await env.create(ObjectKey("v1", "ConfigMap", "database", "shop"), data={"host": "theirs"})
        made = component.Builder("web", condition_type="WebReady").with_resource(maker(), read_only=True).suspend()
        await env.reconcile(made.with_resource(reader(web_base, host).build()).build())
        web = await env.cluster.get(env.web)
        assert (web["spec"]["replicas"], web["metadata"]["annotations"]) == (0, {"db-host": "theirs"})

    async def test_data_that_is_not_needed_is_not_read(
        self, env: Env, web: deployment.Resource, maker: Callable[..., Any]
    ) -> None:
        await env.reconcile(builder(maker(), web).suspend().build())
        assert [request.kind for request in env.cluster.requests if request.kind == "ConfigMap"] == []

    async def test_a_missing_object_is_created_suspended_with_what_it_needs(
        self, env: Env, subject: Callable[..., Any]
    ) -> None:
        result = await env.reconcile(subject(suspended=True))
        assert result.condition.reason is Reason.SUSPENDED
        assert [outcome.action for outcome in result.outcomes] == [Action.CREATED, Action.CREATED]
        assert await env.replicas() == 0

    async def test_a_scaler_that_reads_its_targets_data_waits_for_it(
        self, env: Env, web_base: Manifest, hpa_base: Manifest
    ) -> None:
        """Otherwise it could be rendered neither for the suspension nor for the resume."""
        uid = Data[str]("uid")

        def note(m: hpa.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("uid", uid.require()))

        target = deployment.Builder(web_base).extract_into(uid, uid_of).build()
        scaler = hpa.Builder(hpa_base).with_data_guard(uid).with_mutation(hpa.Mutation("note", note)).build()
        await env.reconcile(builder(target, scaler).build())
        await env.scale(5)
        await env.reconcile(builder(target, scaler).suspend().build())
        assert (await env.replicas(), await env.exists(env.hpa)) == (0, False)
        result = await env.reconcile(builder(target, scaler).build())
        assert [outcome.action for outcome in result.outcomes] == [Action.UPDATED, Action.CREATED]
        assert await env.replicas() == 5


@pytest.mark.promise("secrets", runs="extractions, mutations, gates, guards, statuses, with errors of Python and ocf")
class TestErrorsNameNoValueOfASecret:
    """The condition has the type of the exception; its text is in the cause."""

    @pytest.mark.parametrize("parse", [int, Quantity.parse], ids=["int", "parse_quantity"])
    async def test_an_extraction(self, env: Env, host: Data[Any], parse: Callable[[str], object]) -> None:
        key = ObjectKey("v1", "Secret", "login", "shop")
        await env.create(key, stringData={"password": "hunter2"})
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}
        reads = secret.Builder(base).extract_into(host, lambda live: parse(b64decode(read_entry(live)).decode()))
        subject = component.Builder("web", condition_type="WebReady").with_resource(reads.build(), read_only=True)
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(subject.build())
        name = "ValueError" if parse is int else "QuantityError"
        assert caught.value.problem.endswith(f'extract data "{host.name}": {name}')
        assert "hunter2" not in (await env.condition())["message"]

    @pytest.mark.parametrize("step", ["mutation", "guard"])
    async def test_a_mutation_and_a_guard(self, env: Env, step: str) -> None:
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}

        def broken(_: object) -> Any:
            raise ValueError("hunter2 is too short")

        made = secret.Builder(base | {"stringData": {"password": "hunter2"}})
        if step == "guard":
            made.with_guard(broken)
        else:
            made.with_mutation(secret.Mutation("broken", lambda m: m.edit_object_metadata(broken)))
        subject = component.Builder("web", condition_type="WebReady").with_resource(made.build()).build()
        with pytest.raises(ReconcileError, match="ValueError"):
            await env.reconcile(subject)
        assert "hunter2" not in (await env.condition())["message"]

    @pytest.mark.parametrize("step", ["edit", "value", "mutation", "gate", "guard", "status"])
    async def test_a_function_of_another_kind_that_has_read_a_value(
        self, env: Env, host: Data[Any], web_base: Manifest, step: str
    ) -> None:
        """The value reaches it through a data cell."""
        await env.create(ObjectKey("v1", "Secret", "login", "shop"), stringData={"password": "hunter2"})
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}
        reads = secret.Builder(base).extract_into(host, lambda live: b64decode(read_entry(live)).decode())

        def broken(*_: object) -> Any:
            return int(host.require())

        def fails(m: deployment.Mutator) -> None:
            if step == "mutation":
                broken()
            if step == "edit":
                m.edit_deployment_spec(broken)
            if step == "value":  # pydantic quotes what it rejects
                m.edit_deployment_spec(lambda spec: setattr(spec.raw, "replicas", host.require()))

        class Broken:
            def enabled(self) -> bool:
                return bool(broken())

        gate = Broken() if step == "gate" else None
        web = deployment.Builder(web_base).with_mutation(deployment.Mutation("broken", fails, feature=gate))
        if step == "guard":
            web.with_guard(broken)
        if step == "status":
            web.with_custom_converge_status(broken)
        made = component.Builder("web", condition_type="WebReady").with_resource(reads.build(), read_only=True)
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(made.with_resource(web.build()).build())
        assert "text withheld" in caught.value.problem
        assert "hunter2" not in str(caught.value) + (await env.condition())["message"]

    @pytest.mark.parametrize(
        ("through", "suspended"),
        [
            ("a data cell", False),
            ("a data cell", True),
            ("another object", False),
            ("another object", True),
            ("its own data", False),
        ],
    )
    async def test_a_rejection_of_the_api_server(
        self, env: Env, host: Data[Any], web_base: Manifest, through: str, *, suspended: bool
    ) -> None:
        """It quotes what it rejects: here a label, which must not contain an exclamation mark."""
        await env.create(ObjectKey("v1", "Secret", "login", "shop"), stringData={"password": "hunter2!"})
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}
        reads = secret.Builder(base).extract_into(host, lambda live: b64decode(read_entry(live)).decode())
        url = Data[str]("url")
        shown = url if through == "another object" else host

        def labels(m: Any) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_label("user", shown.require()))

        def link(m: configmap.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("url", host.require()))

        metadata = {"name": "link", "namespace": "shop"}
        linked = configmap.Builder({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        linked.with_data_guard(host).with_mutation(configmap.Mutation("link", link))
        linked.extract_into(url, lambda live: str(((live.metadata and live.metadata.annotations) or {})["url"]))
        web = deployment.Builder(web_base).with_data_guard(shown).with_mutation(deployment.Mutation("labels", labels))
        made = component.Builder("web", condition_type="WebReady").suspend(suspended)
        if through == "its own data":
            made.with_resource(
                secret.Builder({**base, "metadata": {**metadata, "labels": {"user": "hunter2!"}}}).build()
            )
        else:
            made.with_resource(reads.build(), read_only=True).with_resource(linked.build())
            made.with_resource(web.build())
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(made.build())
        assert "metadata.labels: Invalid value (the values are not shown" in caught.value.problem
        texts = "".join(format_exception(caught.value)) + (await env.condition())["message"]
        assert "hunter2" not in texts

    async def test_a_rejection_of_the_api_server_without_a_secret_is_shown_as_it_is(
        self, env: Env, web_base: Manifest
    ) -> None:
        base = copy_json(web_base)
        base["metadata"]["labels"] = {"user": "anyone!"}
        with pytest.raises(ReconcileError, match='Invalid value: "anyone!"'):
            await env.reconcile(builder(deployment.Builder(base).build()).build())

    async def test_an_edit_of_what_an_earlier_mutation_has_set(
        self, env: Env, host: Data[Any], web_base: Manifest
    ) -> None:
        """The mutation that fails has read nothing itself."""
        await env.create(ObjectKey("v1", "Secret", "login", "shop"), stringData={"password": "hunter2"})
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}
        reads = secret.Builder(base).extract_into(host, lambda live: b64decode(read_entry(live)).decode())

        def sets(m: deployment.Mutator) -> None:
            password = host.require()
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("password", password))

        def quotes(m: deployment.Mutator) -> None:
            def edit(meta: ObjectMetaEditor) -> None:
                int((meta.raw.annotations or {})["password"])

            m.edit_object_metadata(edit)

        web = deployment.Builder(web_base).with_mutation(deployment.Mutation("sets", sets))
        web.with_mutation(deployment.Mutation("quotes", quotes))
        made = component.Builder("web", condition_type="WebReady").with_resource(reads.build(), read_only=True)
        with pytest.raises(ReconcileError, match="text withheld") as caught:
            await env.reconcile(made.with_resource(web.build()).build())
        assert "hunter2" not in str(caught.value) + (await env.condition())["message"]

    async def test_a_function_that_has_read_a_value_made_of_it(
        self, env: Env, host: Data[Any], web_base: Manifest, config_map: Callable[..., StaticKind]
    ) -> None:
        """An extraction of another kind has put it into a second cell."""
        url = Data[str]("url")
        await env.create(ObjectKey("v1", "Secret", "login", "shop"), stringData={"password": "hunter2"})
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}
        reads = secret.Builder(base).extract_into(host, lambda live: b64decode(read_entry(live)).decode())
        joins = config_map("database", host="db").extract_into(url, lambda _: f"db:{host.require()}")
        web = deployment.Builder(web_base).with_guard(lambda _: int(url.require()))  # type: ignore[arg-type, return-value]
        made = component.Builder("web", condition_type="WebReady").with_resource(reads.build(), read_only=True)
        with pytest.raises(ReconcileError, match="text withheld") as caught:
            await env.reconcile(made.with_resource(joins.build()).with_resource(web.build()).build())
        assert "hunter2" not in str(caught.value) + (await env.condition())["message"]

    @pytest.mark.parametrize("step", ["mutation", "gate", "guard"])
    async def test_a_function_that_has_not_read_a_value_is_quoted(
        self, env: Env, host: Data[Any], web_base: Manifest, step: str
    ) -> None:
        """Another function of the same reconcile has read it."""
        await env.create(ObjectKey("v1", "Secret", "login", "shop"), stringData={"password": "hunter2"})
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}
        reads = secret.Builder(base).extract_into(host, lambda live: b64decode(read_entry(live)).decode())

        def use(m: deployment.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("hash", str(len(host.require()))))

        def broken(*_: object) -> Any:
            raise ValueError("no such color")

        class Broken:
            def enabled(self) -> bool:
                return bool(broken())

        web = deployment.Builder(web_base).with_mutation(deployment.Mutation("use", use)).build()
        later = configmap.Builder(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "colors", "namespace": "shop"}}
        )
        if step == "guard":
            later.with_guard(broken)
        else:
            gate = Broken() if step == "gate" else None
            later.with_mutation(configmap.Mutation("broken", broken, feature=gate))
        made = component.Builder("web", condition_type="WebReady").with_resource(reads.build(), read_only=True)
        with pytest.raises(ReconcileError, match="no such color"):
            await env.reconcile(made.with_resource(web).with_resource(later.build()).build())
