"""All commands at once: a parser of everything, the version, help without a command, completion in shells.

What must hold: names of processes are chosen by other clients of the server.  A script for a shell reads
them line by line, compares them literally, passes them to the shell quoted, and never evaluates them.  A
name that looks like an option is not offered.
"""

from __future__ import annotations

import argparse
import json
from difflib import get_close_matches

from holdfast import __version__

from .main import COMMANDS, configure
from .options import Parser, wants_json


def parser_of_all() -> argparse.ArgumentParser:
    """Return a parser that has all commands with all their options, for documents and completion."""
    top, commands = _top()
    for name, command in COMMANDS.items():
        configure(commands.add_parser(name, help=command.help, allow_abbrev=False), name)
    return top


def parse_without_command(argv: list[str]) -> argparse.Namespace:
    """Parse a command line that names no command: print help or the version, or complain; then exit."""
    top, commands = _top()
    for each, command in COMMANDS.items():
        commands.add_parser(each, help=command.help)
    name = argv[0] if argv else ""
    if name and not name.startswith("-"):
        close = get_close_matches(name, COMMANDS, 1)
        top.error(f"there is no command {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    return top.parse_args(argv)


def _top() -> tuple[Parser, argparse._SubParsersAction[Parser]]:
    top = Parser(
        prog="holdfast",
        description="Runs processes, here or on a server: 'holdfast run -- ls' is a beginning.",
        epilog="'holdfast COMMAND --help' explains a command.  $HOLDFAST_URL names a server for all of them.",
    )
    top.add_argument("--version", action="version", version=f"holdfast {__version__}")
    return top, top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)


def version(arguments: argparse.Namespace) -> int:
    """Print the version."""
    if wants_json(arguments):
        print(json.dumps({"version": __version__}, separators=(",", ":")))
    else:
        print(f"holdfast {__version__}")
    return 0


# Scripts that complete commands, options and names of processes in shells.

_NAMED = ("attach", "logs", "wait", "kill", "restart", "rm", "signal", "write", "resize")
"""Commands whose arguments are names of processes."""

_PROGRAMS = ("run", "exec")
"""Commands whose arguments are a program and its arguments."""

_BASH = r"""# holdfast in bash: eval "$(holdfast completion bash)"
_holdfast() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i
    COMPREPLY=()
    for ((i = 2; i < COMP_CWORD; i++)); do
        # From here on it is another program's command line.
        if [[ ${COMP_WORDS[i]} == -- ]]; then _command_offset $((i + 1)) 2>/dev/null; return; fi
    done
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "%(commands)s --help --version" -- "$word"))
        return
    fi
    case $command in
%(cases)s
    esac
}
_holdfast_names() {
    # Others have chosen these names: compare and quote them, and let nothing evaluate them.
    local typed=$1 quote= name quoted break
    [[ -n ${HOLDFAST_URL-} ]] || return
    case $typed in
        \'* | \"*) quote=${typed:0:1} typed=${typed:1} ;;
        *) IFS= read typed <<<"$typed" ;;  # Without -r this takes backslashes away.
    esac
    while IFS= read -r name; do
        [[ $name == "$typed"* && $name != -* ]] || continue
        case $quote in
            \') [[ $name == *\'* ]] && continue ;;  # Others mean themselves between these quotes.
            \") [[ $name == *[\"\$\`\\!]* ]] && continue ;;
            *)
                printf -v quoted %%q "$name"
                # For readline, though not for the shell, these begin another word.
                for break in : = @; do
                    [[ $quoted == \$\'* ]] || quoted=${quoted//$break/"\\$break"}
                done
                name=$quoted ;;
        esac
        COMPREPLY+=("$name")
    done < <(holdfast ps -a -q 2>/dev/null)
}
complete -o default -F _holdfast holdfast
"""

_BASH_CASE = """\
        %(name)s)
            if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "%(options)s" -- "$word"))
            %(rest)sfi ;;"""

_BASH_NAMES = 'else _holdfast_names "$word"\n            '
_BASH_WORDS = 'else COMPREPLY=($(compgen -W "%s" -- "$word"))\n            '

_ZSH = """\
#compdef holdfast
# holdfast in zsh: eval "$(holdfast completion zsh)", or a file _holdfast in a directory of fpath
_holdfast() {
    local -a verbs  # What zsh calls commands are the programs that there are.
    verbs=(
%(commands)s
    )
    if (( CURRENT == 2 )); then
        _describe command verbs
        return
    fi
    case ${words[2]} in
%(cases)s
    esac
}
_holdfast_names() {
    # Others have chosen these names: add them as they are; compadd quotes them.
    local -a names expl
    [[ -n $HOLDFAST_URL ]] || return
    names=("${(@f)$(holdfast ps -a -q 2>/dev/null)}")
    names=("${(@)names:#(-*|)}")
    _wanted processes expl process compadd -a names
}
compdef _holdfast holdfast
"""

_FISH = """\
# holdfast in fish: holdfast completion fish | source
function __holdfast_names
    # Others have chosen these names: fish takes a line as it is, and quotes it.
    test -n "$HOLDFAST_URL"; and holdfast ps -a -q 2>/dev/null | string match -v -- '-*'
end
complete -c holdfast -f -n __fish_use_subcommand -l version -d 'print the version'
%(lines)s
"""


def completion(arguments: argparse.Namespace) -> int:
    """Print the script for a shell."""
    print(script(arguments.shell, parser_of_all()), end="")
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the script for a shell, made from a parser of all commands."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands_of(parser))


class OptionWords:
    """An option, as far as a completion script needs it."""

    def __init__(self, action: argparse.Action) -> None:
        self.names = list(action.option_strings)
        self.help = (action.help or "").split(" (default")[0].replace("%%", "%")
        self.takes_value = action.nargs != 0
        self.choices = [str(choice) for choice in action.choices or ()]
        self.is_file = action.metavar in ("FILE", "DIR")


class CommandWords:
    """A command, as far as a completion script needs it."""

    def __init__(self, name: str, words: str, parser: argparse.ArgumentParser) -> None:
        self.name = name
        self.help = words
        self.parser = parser
        self.options = [OptionWords(action) for action in parser._actions if action.option_strings]
        self.words = [
            str(each)
            for action in parser._actions
            if not action.option_strings
            for each in action.choices or ()
        ]


def commands_of(parser: argparse.ArgumentParser) -> list[CommandWords]:
    """Return the commands of a parser; none if it has no commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words = {each.dest: each.help or "" for each in action._choices_actions}
            return [CommandWords(name, words[name], each) for name, each in action.choices.items()]
    return []


def _bash(commands: list[CommandWords]) -> str:
    cases = []
    for command in commands:
        rest = _BASH_NAMES if command.name in _NAMED else ""
        if command.words:
            rest = _BASH_WORDS % " ".join(command.words)
        names = " ".join(name for option in command.options for name in option.names)
        cases.append(_BASH_CASE % {"name": command.name, "options": names, "rest": rest})
    return _BASH % {"commands": " ".join(each.name for each in commands), "cases": "\n".join(cases)}


def _zsh(commands: list[CommandWords]) -> str:
    cases = []
    for command in commands:
        specs = [_zsh_option(option) for option in command.options]
        if command.name in _NAMED:
            specs.append("'*:process:_holdfast_names'")
        elif command.words:
            specs.append(f"'1:word:({' '.join(command.words)})'")
        elif command.name in _PROGRAMS:
            specs.append("'(-)1:program: _command_names -e'")
            specs.append("'*::argument:_normal'")
        else:
            specs.append("'*:file:_files'")
        body = " \\\n                ".join(specs)
        head = f"        {command.name})\n            shift words; (( CURRENT-- ))\n"
        cases.append(f"{head}            _arguments -S \\\n                {body} ;;")
    described = "\n".join(f"        {_quoted(f'{each.name}:{each.help}')}" for each in commands)
    return _ZSH % {"commands": described, "cases": "\n".join(cases)}


def _zsh_option(option: OptionWords) -> str:
    words = option.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = ""
    if option.takes_value:
        what = f"({' '.join(option.choices)})" if option.choices else "_files" if option.is_file else " "
        value = f":value:{what}"
    names = option.names
    if len(names) == 1:
        return _quoted(f"{names[0]}[{words}]{value}")
    return f"'({' '.join(names)})'{{{','.join(names)}}}{_quoted(f'[{words}]{value}')}"


def _fish(commands: list[CommandWords]) -> str:
    lines = []
    for command in commands:
        lines.append(
            f"complete -c holdfast -f -n __fish_use_subcommand -a {command.name} -d {_quoted(command.help)}"
        )
        within = f"complete -c holdfast -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            parts = [f"-{'l' if name.startswith('--') else 's'} {name.lstrip('-')}" for name in option.names]
            if option.choices:
                parts.append(f"-x -a {_quoted(' '.join(option.choices))}")
            elif option.takes_value:
                parts.append("-r" if option.is_file else "-x")
            lines.append(f"{within} {' '.join(parts)} -d {_quoted(option.help)}")
        if command.name in _NAMED:
            lines.append(f"{within} -f -a '(__holdfast_names)'")
        elif command.words:
            lines.append(f"{within} -f -a {_quoted(' '.join(command.words))}")
        elif command.name in _PROGRAMS:
            lines.append(f"{within} -x -a '(__fish_complete_subcommand --fcs-skip=2)'")
    return _FISH % {"lines": "\n".join(lines)}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
