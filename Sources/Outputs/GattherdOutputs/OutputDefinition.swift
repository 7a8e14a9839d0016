package import GattherdConfig
public import GattherdLog
public import GattherdModel

/// The definition of an output: the type that one line of the registry names.
///
/// The type reads its section of the configuration and makes the output. See docs/outputs.md.
package protocol OutputDefinition: OutputSectionDefinition {
    /// Returns the kinds of entries that the output needs.
    static func content(_ settings: Settings) -> JournalConsumerOptions.Content

    /// Makes the output; nothing is connected before it runs.
    ///
    /// - Throws: ``OutputError`` if a file that the section names cannot be used. The daemon does not start then.
    static func make(_ settings: Settings, _ context: OutputContext) throws(OutputError) -> any Output

    /// Returns further findings, for `gattherd check` and for a reload.
    ///
    /// The framework checks the files itself. If one of them has an error, only that is reported.
    static func findings(_ settings: Settings) -> [ConfigError]
}

extension OutputDefinition {
    package static func content(_ settings: Settings) -> JournalConsumerOptions.Content { .readings }

    package static func findings(_ settings: Settings) -> [ConfigError] { [] }
}

/// The parts of the gateway that an output may use.
public struct OutputContext: Sendable {
    /// Receives the members of a ``LifecycleEvent`` of the kind `output`; never blocks.
    public typealias EventHandler = @Sendable (KeyValuePairs<String, SampleValue?>) -> Void
    /// Returns the first line of a file.
    public typealias SecretReader = @Sendable (_ path: String, _ noun: String) throws(OutputError) -> String

    /// The output's name.
    public let name: String
    /// The key of its section.
    public let kind: String
    /// The gateway's name.
    public let gateway: String
    public let journal: any JournalConsumer
    public let log: Log
    public let record: EventHandler
    /// Reads a password or a token; the noun is for the error.
    public let readSecret: SecretReader
    /// The folder for files that outlive the daemon; `nil` without one.
    public var stateFolder: String?
    /// The version of gattherd.
    public var version = ""
    /// Returns the devices in the gateway's history, or `nil` if they cannot be read now; reads the file.
    public var devices: @Sendable () async -> [SeenDevice]? = { nil }
    /// Sets a control for an output that accepts commands.
    public var setControl: @Sendable (ControlRequest) async -> Result<ControlValue, ControlError> = { request in
        .failure(.notReady(device: request.device))
    }
    /// Returns the controls that the devices' sections allow to be set; a reload may change them.
    public var permissions: @Sendable () -> ControlPermissions = { ControlPermissions() }

    /// Returns true if this gateway publishes the readings of an advertising device at a time; `nil` for always.
    ///
    /// Never blocks.
    public var isPublisher: (@Sendable (_ device: String, Timestamp) -> Bool)?

    public init(
        name: String,
        kind: String,
        gateway: String,
        journal: any JournalConsumer,
        log: Log,
        record: @escaping EventHandler,
        readSecret: @escaping SecretReader
    ) {
        (self.name, self.kind, self.gateway) = (name, kind, gateway)
        (self.journal, self.log) = (journal, log)
        (self.record, self.readSecret) = (record, readSecret)
    }
}

/// The reason why an output cannot be made, with its remedy.
public struct OutputError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}

/// The section of a configuration together with the definition of its output.
package struct ConfiguredOutput: Sendable {
    /// The key of the section.
    package let kind: String
    package let consumer: JournalConsumerOptions
    package let findings: [ConfigError]
    private let makeOutput: @Sendable (OutputContext) throws(OutputError) -> any Output

    /// Creates the configured output; `nil` if the section is another output's.
    package init?<Definition: OutputDefinition>(_ section: OutputSection, _ definition: Definition.Type) {
        guard let settings = section.settings(of: definition) else { return nil }
        kind = Definition.section
        consumer = JournalConsumerOptions(
            name: section.name,
            content: Definition.content(settings),
            longestBacklog: section.longestBacklog
        )
        findings = Definition.findings(settings)
        makeOutput = { (context) throws(OutputError) in try Definition.make(settings, context) }
    }

    package func make(_ context: OutputContext) throws(OutputError) -> any Output {
        try makeOutput(context)
    }
}
