import GattherdConfig
import GattherdGateway

extension CommandSpec {
    static let configurationSchema = CommandSpec(
        name: "config schema",
        summary: "print the JSON Schema of the configuration",
        details: """
            Editors with a YAML language server complete and check keys with it. It describes a whole file, and knows less
            than 'gattherd check'. The package installs it as gattherd.schema.json in /usr/share/gattherd.
            """,
        examples: ["gattherd config schema > gattherd.schema.json"],
        run: { _ in Terminal.say(ConfigReference.installed.schema) }
    )

    static let configurationPage = CommandSpec(
        name: "config page",
        summary: "print the reference of the configuration as Markdown",
        details: "Every key with its values, its default and an example.",
        examples: ["gattherd config page > configuration.md"],
        run: { _ in Terminal.say(ConfigReference.installed.page) }
    )

    static let configurationManual = CommandSpec(
        name: "config manual",
        summary: "print the manual page gattherd.yaml(5)",
        details: "The package installs it: man 5 gattherd.yaml.",
        examples: ["gattherd config manual | man -l -"],
        run: { _ in
            Terminal.say(ConfigReference.installed.manual(version: GattherdVersion.current))
        }
    )
}

extension ConfigReference {
    /// The reference with all outputs of this program.
    static var installed: ConfigReference { ConfigReference(outputs: OutputRegistry.definitions) }
}
