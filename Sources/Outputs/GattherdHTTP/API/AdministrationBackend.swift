package import GattherdLog
import GattherdModel

/// The part of the gateway that changes its configuration, and that names its problems.
package protocol AdministrationBackend: Sendable {
    /// Returns the peripherals in reach; the adapters listen for more for a while.
    func peripherals() async -> [UInt8]
    /// Adds a device to the configuration, or returns the text that would be written.
    func add(_ device: NewDevice) async -> Result<[UInt8], BackendError>
    /// Changes the name for people, the area and the note of a device.
    func label(_ device: String, _ label: NewLabel) async -> Result<[UInt8], BackendError>
    /// Returns the list of the configuration's files.
    func configurationFiles() async -> [UInt8]
    /// Returns the text of a file of the configuration.
    func configurationFile(_ name: String) async -> Result<[UInt8], BackendError>
    /// Checks the configuration with another text of a file.
    func check(_ draft: ConfigurationDraft) async -> Result<[UInt8], BackendError>
    /// Writes a file of the configuration and reloads it.
    func apply(_ draft: ConfigurationDraft) async -> Result<[UInt8], BackendError>
    /// Ends the daemon, which its supervisor starts again.
    func restart() async -> Result<[UInt8], BackendError>
    /// Returns the newest entries of the log.
    func log(_ query: LogQuery) async -> [UInt8]
    /// Explains the state of a device.
    func explanation(of device: String) async -> Result<[UInt8], BackendError>
    /// Checks the host.
    func doctor() async -> Result<[UInt8], BackendError>
}

/// A device that a user adds.
package struct NewDevice: Hashable, Sendable {
    package var address: String
    package var name: String
    package var profiles: [String]
    package var title: String?
    package var area: String?
    /// The key of encrypted advertisements, as hexadecimal digits.
    package var key: String?
    /// True to write nothing.
    package var isPreview: Bool

    /// Reads the body of a request.
    ///
    /// - Throws: ``BackendError`` for a missing or unknown member, or one of another kind.
    package init(_ body: RequestBody) throws(BackendError) {
        try body.refuseMembers(except: ["address", "name", "profiles", "title", "area", "key", "preview"])
        guard let address = try body.text("address"), let name = try body.text("name") else {
            throw BackendError(.invalid, #"send {"address": "…", "name": "…"}, both texts"#)
        }
        (self.address, self.name) = (address, name)
        profiles = try body.texts("profiles")
        (title, area, key) = (try body.text("title"), try body.text("area"), try body.text("key"))
        isPreview = try body.flag("preview")
    }
}

/// The texts about a device for people; `nil` removes one.
package struct NewLabel: Hashable, Sendable {
    package var title: String?
    package var area: String?
    package var note: String?

    /// Reads the body of a request.
    ///
    /// - Throws: ``BackendError`` for an unknown member, or one that is no short text.
    package init(_ body: RequestBody) throws(BackendError) {
        try body.refuseMembers(except: ["title", "area", "note"])
        (title, area, note) = (try body.text("title"), try body.text("area"), try body.text("note"))
    }
}

/// Another text of a file of the configuration.
package struct ConfigurationDraft: Hashable, Sendable {
    /// The name of the file in the folder of the configuration.
    package var file: String
    package var text: String
    /// The version that the draft began with; `nil` for a new file.
    package var version: String?

    /// - Throws: ``BackendError`` for a missing or unknown member, or one that is not text.
    init(_ body: RequestBody) throws(BackendError) {
        try body.refuseMembers(except: ["file", "text", "version"])
        guard let file = try body.text("file"), let text = body.string("text") else {
            throw BackendError(.invalid, #"send {"file": "…", "text": "…"}, both texts"#)
        }
        (self.file, self.text, version) = (file, text, try body.text("version"))
    }
}

/// A query for entries of the log.
package struct LogQuery: Hashable, Sendable {
    package var level: LogLevel
    package var device: String?
    package var limit: Int

    /// The largest limit that a request may set.
    static let maximum = 1000

    /// - Throws: ``BackendError`` for an invalid level or limit.
    init(_ request: HTTPRequest) throws(BackendError) {
        device = request.query["device"]
        let word = request.query["level"] ?? "info"
        guard let level = LogLevel.allCases.first(where: { "\($0)" == word }) else {
            let words = LogLevel.allCases.map { "\($0)" }.joined(separator: ", ")
            throw BackendError(.invalid, "'level' must be one of \(words)")
        }
        let text = request.query["limit"] ?? "200"
        guard let limit = Int(text), (1...Self.maximum).contains(limit) else {
            throw BackendError(.invalid, "'limit' must be a number from 1 to \(Self.maximum)")
        }
        (self.level, self.limit) = (level, limit)
    }
}

/// The object in the body of a request.
package struct RequestBody {
    /// The longest text of a member, except of a file, in bytes.
    private static let longestText = 2000
    private static let maximumTexts = 16

    private let members: [JSONMember]

    /// - Returns: `nil` if the bytes are no object of JSON.
    package init?(_ bytes: [UInt8]) {
        guard case .object(let members) = try? JSONReader.value(of: bytes) else { return nil }
        self.members = members
    }

    subscript(name: String) -> JSONValue? { member(name)?.value }

    func member(_ name: String) -> JSONMember? { members.first { $0.name == name } }

    /// Refuses members with other names: a mistyped one would count as missing.
    ///
    /// - Throws: ``BackendError`` with the known names.
    func refuseMembers(except known: [String]) throws(BackendError) {
        guard let other = members.first(where: { !known.contains($0.name) }) else { return }
        let name = other.name.cut(toBytes: 80)
        throw BackendError(.invalid, "unknown member '\(name)'; use \(known.joined(separator: ", "))")
    }

    /// Returns a text of any length.
    func string(_ name: String) -> String? {
        guard case .string(let text) = self[name] else { return nil }
        return text
    }

    /// Returns a short text; `nil` if it is empty, null or missing.
    ///
    /// - Throws: ``BackendError`` for another value, or a long text.
    func text(_ name: String) throws(BackendError) -> String? {
        switch self[name] {
        case nil, .null?: return nil
        case .string(let text)? where text.utf8.count <= Self.longestText: return text.isEmpty ? nil : text
        case _?: throw BackendError(.invalid, "'\(name)' must be a text of at most \(Self.longestText) bytes")
        }
    }

    /// Returns the texts of a list; empty if it is null or missing.
    ///
    /// - Throws: ``BackendError`` for another value, many texts, or a long one.
    func texts(_ name: String) throws(BackendError) -> [String] {
        let problem = "'\(name)' must be a list of at most \(Self.maximumTexts) texts"
        switch self[name] {
        case nil, .null?: return []
        case .array(let values)? where values.count <= Self.maximumTexts:
            let texts = values.compactMap { value -> String? in
                guard case .string(let text) = value, text.utf8.count <= Self.longestText else { return nil }
                return text
            }
            guard texts.count == values.count else { throw BackendError(.invalid, problem) }
            return texts
        case _?: throw BackendError(.invalid, problem)
        }
    }

    /// Returns a flag; false if it is null or missing.
    ///
    /// - Throws: ``BackendError`` for another value.
    func flag(_ name: String) throws(BackendError) -> Bool {
        switch self[name] {
        case nil, .null?: return false
        case .boolean(let flag)?: return flag
        case _?: throw BackendError(.invalid, "'\(name)' must be true or false")
        }
    }
}
