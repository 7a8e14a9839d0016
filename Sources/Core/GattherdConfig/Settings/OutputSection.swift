/// The definition of a top-level section that configures one output, such as `lines`.
///
/// The outputs implement it, so that this module knows none of them.
package protocol OutputSectionDefinition: Sendable {
    /// The content of a section; two equal contents need no restart.
    associatedtype Settings: Hashable & Sendable

    /// The key of the section, which is also the name of an output without a `name`.
    static var section: String { get }

    /// Reads the section and reports mistakes to it.
    ///
    /// Keys that it does not read are reported as unknown.
    ///
    /// - Returns: The settings; `nil` if a required key is missing or invalid.
    static func read(_ section: SectionReader, _ environment: OutputEnvironment) -> Settings?

    /// Returns the files that the section names.
    static func files(_ settings: Settings) -> [NamedFile]

    /// Returns the name of a receiver that keeps one cursor for the gateway, so that only one output may deliver to it.
    static func receiver(_ settings: Settings, _ environment: OutputEnvironment) -> String?

    /// The descriptions of the section and of its keys, for references; `""` is the section itself.
    ///
    /// Keys of a section inside have names like `tls.ca`.
    static var descriptions: [String: ConfigDescription] { get }
}

extension OutputSectionDefinition {
    package static func files(_ settings: Settings) -> [NamedFile] { [] }

    package static func receiver(_ settings: Settings, _ environment: OutputEnvironment) -> String? { nil }

    package static var descriptions: [String: ConfigDescription] { [:] }
}

/// A file that the section of an output names.
package struct NamedFile: Hashable, Sendable {
    package enum Use: Hashable, Sendable {
        /// A password or a token, named by the noun; it is read at the start and perhaps for later connections.
        case secret(String, isReadAgain: Bool)
        /// A private key, which is read for each connection.
        case key
        /// A certificate, which is read for each connection.
        case certificate
        /// Receives the output's entries.
        case destination
    }

    package let path: Located<String>
    package let use: Use

    package init(_ path: Located<String>, _ use: Use) {
        (self.path, self.use) = (path, use)
    }

    /// The files of a TLS section.
    package static func tls(ca: Located<String>?, certificate: Located<String>?, key: Located<String>?) -> [NamedFile] {
        let certificates = [ca, certificate].compactMap { $0.map { NamedFile($0, .certificate) } }
        return certificates + (key.map { [NamedFile($0, .key)] } ?? [])
    }

    /// True if a change of the file takes effect only at a restart.
    package var needsRestart: Bool { if case .secret(_, isReadAgain: false) = use { true } else { false } }
}

/// The configuration around the section of an output.
package struct OutputEnvironment: Sendable {
    /// The gateway's name, a slug.
    package let gateway: String
    /// The name of the output and of its cursor.
    package let name: String
    private let paths: PathRule

    init(gateway: String, name: String, paths: PathRule) {
        (self.gateway, self.name, self.paths) = (gateway, name, paths)
    }

    /// Returns a path, resolved from the folder of the main file if it is relative.
    package func resolve(_ path: Located<String>) -> Located<String> { paths.resolve(path) }

    /// Reads the keys of a section that describe the connection to an MQTT broker.
    ///
    /// - Parameters:
    ///   - section: The section.
    ///   - title: The section's name in errors.
    ///   - clientID: The client id, unless the section has one.
    /// - Returns: The settings; `nil` without a valid URL.
    package func broker(_ section: SectionReader, title: String, clientID: String) -> MQTTSettings? {
        let reader = BrokerReader(title: title) { [paths] in paths.resolve($0) }
        guard var settings = reader.settings(section, gateway: gateway) else { return nil }
        if section.place(of: "client_id") == nil { settings.clientID = clientID }
        return settings
    }
}

/// The section of one output: its own settings, and the keys that all outputs have.
package struct OutputSection: Sendable {
    /// The name of the output and of its cursor.
    package let name: String
    /// The key of the section.
    package let section: String
    /// The place of the section's key, or of the element of a list.
    package let place: ConfigPlace?
    /// The maximum number of entries of the journal that wait for the output; `nil` for no maximum.
    package let longestBacklog: Int64?
    /// The files that the section names.
    package let files: [NamedFile]
    /// The receiver that no other output may have; `nil` if it may have several.
    let receiver: String?
    private let content: any Hashable & Sendable

    /// The key of ``longestBacklog``.
    static let backlogKey = "max_backlog"

    /// Reads a section; `nil` if it has errors.
    init?<Definition: OutputSectionDefinition>(
        _ definition: Definition.Type,
        _ section: SectionReader,
        _ environment: OutputEnvironment
    ) {
        longestBacklog = section.value(Self.backlogKey, .backlog)?.value
        guard let content = Definition.read(section, environment) else { return nil }
        (name, self.section) = (environment.name, Definition.section)
        (place, self.content) = (section.place, content)
        files = Definition.files(content)
        receiver = Definition.receiver(content, environment)
    }

    /// Returns the content; `nil` if the section is another output's.
    package func settings<Definition: OutputSectionDefinition>(of definition: Definition.Type) -> Definition.Settings? {
        section == Definition.section ? content as? Definition.Settings : nil
    }
}

extension OutputSection: Hashable {
    package static func == (left: Self, right: Self) -> Bool {
        left.name == right.name && left.section == right.section && left.longestBacklog == right.longestBacklog
            && AnyHashable(left.content) == AnyHashable(right.content)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(AnyHashable(content))
    }
}

extension ConfigGrammar where Value == Int64 {
    /// The grammar of a number of journal entries.
    static var backlog: Self {
        let noun = "a whole number from 1000"
        let advice = "write for example 1000000, or leave it out to hold all"
        return ConfigGrammar(noun: noun, advice: advice, shape: .integer(1000...Int(Int64.max))) { text in
            Int64(text).flatMap { $0 >= 1000 ? $0 : nil }
        }
    }
}
