"""What other programs and plug-ins may import from pynchy itself."""

import subprocess
import sys

import pynchy

NAMES = """
Answer Card Channel ChannelContext ChannelPlugin ChannelSettings ChannelUnavailable ConfigError
Ending Finding FolderPath GroupSettings HostClient Option OutcomeKind PendingQuestion PluginCommand
PynchyError Question Reply ReplyHandler ReplyRejected RequestId SettingProblem Settings ShownCard
config_option fine load_settings problem warning
"""


def test_these_names_are_there_and_no_others() -> None:
    assert sorted(pynchy.__all__) == sorted(NAMES.split())
    assert all(getattr(pynchy, name) is not None for name in pynchy.__all__)


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import sys, pynchy; print([name for name in sys.modules if name.startswith('pynchy.')])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_another_name_is_no_attribute() -> None:
    assert not hasattr(pynchy, "Nothing")
