import GattherdConfig
import GattherdProfiles

extension CommandSpec {
    static let completions = CommandSpec(
        name: "completions",
        summary: "print the script that completes commands, options, devices and files",
        positionals: [PositionalSpec(name: "SHELL", choices: CompletionScript.allCases.map(\.rawValue))],
        details: """
            The Debian package and make install have installed the scripts already. Otherwise:

              bash  source <(gattherd completions bash), in ~/.bashrc
              zsh   gattherd completions zsh >~/.zfunc/_gattherd, with fpath+=~/.zfunc before compinit in ~/.zshrc
              fish  gattherd completions fish >~/.config/fish/completions/gattherd.fish

            The scripts call gattherd, so devices and profiles are those of the configuration.
            """,
        run: { (arguments) throws(CommandFailure) in
            let name = arguments.positional(0) ?? ""
            guard let script = CompletionScript(rawValue: name) else {
                throw arguments.misuse("unknown shell '\(name)'; write bash, zsh or fish")
            }
            Terminal.say(script.text)
        }
    )

    /// The hidden command that the scripts call.
    static let completionsWords = CommandSpec(
        name: "completions words",
        summary: "print the candidates for the last word",
        positionals: [PositionalSpec(name: "WORD", isOptional: true, isRepeated: true)],
        run: { (arguments) throws(CommandFailure) in
            let completion = Completion(of: arguments.positionals, among: Gattherd.commands)
            for candidate in completion.candidates { Terminal.say(candidate.line) }
        }
    )
}

/// The scripts by which shells ask gattherd for completions.
enum CompletionScript: String, CaseIterable {
    case bash
    case zsh
    case fish

    var text: String {
        switch self {
        case .bash: Self.bashText
        case .zsh: Self.zshText
        case .fish: Self.fishText
        }
    }

    /// The script for bash; without candidates, `-o default` completes files.
    private static let bashText = #"""
        # Completes gattherd in bash.
        _gattherd() {
            local word help
            COMPREPLY=()
            while IFS=$'\t' read -r word help; do
                if [ "$word" = :files ]; then
                    compopt -o default
                else
                    COMPREPLY+=("$word")
                fi
            done < <("${1/#\~/$HOME}" completions words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
        }
        complete -F _gattherd gattherd

        """#

    /// The script for zsh, for a file in `fpath` or for `source`.
    private static let zshText = #"""
        #compdef gattherd
        # Completes gattherd in zsh.
        _gattherd() {
            local -a candidates
            local word help
            while IFS=$'\t' read -r word help; do
                if [[ $word == :files ]]; then
                    _files
                    return
                fi
                candidates+=("${word//:/\\:}${help:+:$help}")
            done < <(${~words[1]} completions words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
            _describe -V gattherd candidates
        }
        if [[ $funcstack[1] == _gattherd ]]; then
            _gattherd "$@"
        else
            compdef _gattherd gattherd
        fi

        """#

    private static let fishText = #"""
        # Completes gattherd in fish.
        function __gattherd_words
            set -l words (commandline -opc)
            set -l current (commandline -ct)
            set -l found ($words[1] completions words -- $words[2..-1] "$current" 2>/dev/null)
            if test "$found[1]" = :files
                __fish_complete_path "$current"
            else
                string join \n -- $found
            end
        end
        complete -c gattherd -f -a '(__gattherd_words)'

        """#
}
