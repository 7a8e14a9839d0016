import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// Declarative profiles in tests.
enum DeclarativeText {
    /// A profile of one characteristic with these fields, one a line from line 9 on.
    static func profile(fields: [String], more: String = "") -> String {
        """
        contract: 1
        profile: thing
        services: [181a]
        characteristics:
          - uuid: 2a6e
            stream: thing
            subscribe: notify
            fields:
        \(fields.map { "      - " + $0 }.joined(separator: "\n"))
        \(more)
        """
    }

    /// Returns the errors of a text as `line:column: reason`.
    static func errors(_ text: String) throws -> [String] {
        let folder = try TemporaryFolder()
        let path = try folder.write(text, to: "profile.yaml")
        let registry = try ProfileRegistry.load(paths: [path])
        #expect(registry.refusals.isEmpty != registry.profiles.isEmpty)
        return registry.refusals.map { String($0.description.dropFirst(path.utf8.count + 1)) }
    }

    static func compile(_ text: String) throws -> any Profile {
        let folder = try TemporaryFolder()
        let registry = try ProfileRegistry.load(paths: [try folder.write(text, to: "profile.yaml")])
        #expect(registry.refusals.map(\.description) == [])
        return try #require(registry.profiles.first)
    }

    /// The samples of a payload as `metric value`, or the reason of the reject.
    static func decode(_ hex: String, fields: String...) throws -> [String] {
        try decode(hex, by: try compile(profile(fields: fields)))
    }

    static func decode(_ hex: String, by profile: any Profile, characteristic: Int = 0) throws -> [String] {
        let octets = try #require(Hexadecimal.octets(hex))
        do throws(PayloadError) {
            let samples = try ProfileTools.decode(octets, characteristic: characteristic, of: profile)
            return samples.map { sample in
                let json = JSONWriter.bytes { $0.value(sample.value) }
                return "\(sample.metric.name) \(String(decoding: json, as: UTF8.self))"
            }
        } catch {
            return [error.description]
        }
    }
}
