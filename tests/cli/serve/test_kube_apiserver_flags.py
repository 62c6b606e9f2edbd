"""What takes the place of kube-apiserver accepts and refuses the same spellings of feature gates as the original."""

import re
import subprocess
from collections.abc import Sequence
from typing import Final

import pytest

from ocf.cli.serve.kube_apiserver import read_flags
from ocf.errors import ConfigError
from ocf.schema.releases import Release, read_gates
from ocf.testing.envtest.binaries import Program, Programs

ACCEPTED: Final = [
    ["--feature-gates=EnvFiles=false"],
    ["--feature-gates", "EnvFiles=false"],
    ["--feature_gates=EnvFiles=false"],
    ["--feature-gates="],
    ["--feature-gates= , ,"],
    ["--feature-gates=,EnvFiles=false,"],
    ["--feature-gates= EnvFiles = false , HPAScaleToZero=T"],
    *([f"--feature-gates=EnvFiles={value}"] for value in ("0", "f", "F", "FALSE", "False", "1", "t", "TRUE", "True")),
    ["--feature-gates=kube:EnvFiles=false"],
    ["--feature-gates= kube : EnvFiles=false , kube:HPAScaleToZero=true"],
    ["--feature-gates=:EnvFiles=false"],
    ["--feature-gates=kube:"],
    ["--feature-gates=EnvFiles=true", "--feature-gates=EnvFiles=false"],
    ["--feature-gates=EnvFiles=true", "--v=2", "--feature-gates", "HPAScaleToZero=true"],
    ["--feature-gates=AllAlpha=true"],
    ["--feature-gates=AllBeta=true"],
    ["--feature-gates=AllBeta=false"],
    ["--feature-gates=AllAlpha=true,ContainerStopSignals=false"],
    ["--feature-gates=ContainerStopSignals=false,AllAlpha=true"],
    ["--feature-gates=AllAlpha=false,AllBeta=false"],
    ["--feature-gates=ImageVolume=true"],
]
REFUSED: Final = [
    ["--feature-gates"],
    ["--feature-gates", "--v=2"],
    ["-feature-gates=EnvFiles=false"],
    ["--feature-gates=EnvFiles=false", "EnvFiles=true"],
    ["--feature-gates=EnvFiles"],
    ["--feature-gates=EnvFiles="],
    ["--feature-gates==false"],
    ["--feature-gates=EnvFiles=yes"],
    ["--feature-gates=EnvFiles=tRUE"],
    ["--feature-gates=EnvFiles=true=false"],
    ["--feature-gates=EnvFiles:false"],
    ["--feature-gates=EnvFiles=false;HPAScaleToZero=true"],
    ["--feature-gates='EnvFiles=false'"],
    ["--feature-gates=envfiles=false"],
    ["--feature-gates=EnvFile=false"],
    ["--feature-gates=wardle:EnvFiles=false"],
    ["--feature-gates=Kube:EnvFiles=false"],
    ["--feature-gates=kube:kube:EnvFiles=false"],
    ["--feature-gates=kube:EnvFiles=false,HPAScaleToZero=true"],
    ["--feature-gates=kube:EnvFiles=false", "--feature-gates=HPAScaleToZero=true"],
    ["--feature-gates=ImageVolume=false"],
    ["--feature-gates=PodLevelResources=false"],
    ["--feature-gates=AllBeta=false,AllAlpha=true"],
    ["--feature-gates=AllBeta=false,ResourceHealthStatusMessage=true"],
]
CASES: Final = [
    *(pytest.param(words, True, id=" ".join(words)) for words in ACCEPTED),
    *(pytest.param(words, False, id=" ".join(words)) for words in REFUSED),
]


def release(words: Sequence[str]) -> Release | None:
    """Return the release that the flags select; None if they are refused."""
    try:
        return Release.of("", read_gates([read_flags(words).get("feature-gates", "")]))
    except ConfigError:
        return None


@pytest.mark.parametrize(("words", "is_accepted"), CASES)
def test_spellings_of_feature_gates(words: Sequence[str], *, is_accepted: bool) -> None:
    assert (release(words) is not None) is is_accepted


@pytest.mark.parametrize(("words", "is_accepted"), CASES)
def test_the_real_program_does_the_same(words: Sequence[str], *, is_accepted: bool, envtest_programs: Programs) -> None:
    # Without an address of etcd it stops after it has read the flags; it names the alpha gates that are on.
    command = [str(envtest_programs.path(Program.API_SERVER)), *words]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stderr  # noqa: S603 (built here)
    assert ("--etcd-servers must be specified" in text) is is_accepted
    if is_accepted:
        found = re.search(r"has alpha features enabled .*features=\[(.*?)\]", text)
        on = set(found[1].split()) - {"AllAlpha"} if found else set()
        ours = release(words)
        assert ours is not None
        assert {gate for gate, value in ours.gates if value} & on == on
