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
