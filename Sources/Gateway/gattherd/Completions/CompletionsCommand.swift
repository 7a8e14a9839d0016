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
                throw arguments.misuse("'\(name)' is not a shell that is known; write bash, zsh or fish")
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
