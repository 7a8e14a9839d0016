import GattherdGATT

/// A skeleton of a native profile: a Swift package that builds and passes its tests.
package struct SwiftSkeleton: Sendable {
    /// A file of a package.
    package struct File: Hashable, Sendable {
        /// The path in the package's folder.
        package let path: String
        package let text: String
    }

    private let name: String
    private let named: [(characteristic: SkeletonCharacteristic, stream: String)]
    /// The function that decodes each stream.
    private let functions: [String: String]

    package init(_ skeleton: ProfileSkeleton) {
        (name, named) = (skeleton.name, skeleton.named)
        functions = Self.functions(of: skeleton.named.map(\.stream))
    }

    /// Returns a function's name for each stream; a name that an earlier stream has gets a number.
    private static func functions(of streams: [String]) -> [String: String] {
        var counts: [String: Int] = [:]
        var functions: [String: String] = [:]
        for stream in streams {
            let name = camel(stream)
            counts[name, default: 0] += 1
            // No other name has an underscore.
            functions[stream] = counts[name].flatMap { $0 > 1 ? "\(name)_\($0)" : nil } ?? name
        }
        return functions
    }

    /// Returns the files of the package.
    ///
    /// - Parameter gattherd: The path of the package with ProfileKit; its last component is the package identity.
    /// - Returns: The files with their paths.
    package func files(gattherd: String) -> [File] {
        [
            File(path: "Package.swift", text: manifest(gattherd)),
            File(path: "README.md", text: page),
            File(path: "Sources/\(typeName)/\(typeName)Profile.swift", text: source),
            File(path: "Sources/\(typeName)/Export.swift", text: export),
            File(path: "Tests/\(typeName)Tests/\(typeName)ProfileTests.swift", text: packageTests),
        ]
    }

    /// The type name: `SoilProbe` for `soil-probe`.
    private var typeName: String {
        let words = name.split { $0 == "-" || $0 == "_" }.map { $0.prefix(1).uppercased() + $0.dropFirst() }
        let joined = words.joined()
        return joined.first?.isLetter == true ? joined : "Profile" + joined
    }

    private func manifest(_ gattherd: String) -> String {
        let identity = gattherd.split(separator: "/").last.map { $0.lowercased() } ?? "gattherd"
        return """
            // swift-tools-version: 6.3
            import PackageDescription

            let package = Package(
                name: "\(name)",
                products: [.library(name: "\(typeName)", type: .dynamic, targets: ["\(typeName)"])],
                dependencies: [.package(path: \(ProfileSkeleton.quoted(gattherd)))],
                targets: [
                    .target(name: "\(typeName)", dependencies: [.product(name: "ProfileKit", package: "\(identity)")]),
                    .testTarget(name: "\(typeName)Tests", dependencies: ["\(typeName)"]),
                ]
            )

            """
    }

    private var page: String {
        """
        # \(name)

        A native profile for gattherd, created by `gattherd profile new --swift`.

            swift test
            swift build -c release
            gattherd profile test .build/release/lib\(typeName).so
            sudo install -D -t /etc/gattherd/profiles .build/release/lib\(typeName).so
            sudo systemctl restart gattherd

        gattherd loads the library when it starts. If it refuses the library, its log gives the reason.

        Install newer versions with `install` as well, never with `cp`: `cp` overwrites the code that is running, `install`
        creates a new file.

        """
    }

    private var export: String {
        """
        import ProfileKit

        private let exported = ExportedProfile(\(typeName)Profile.self)

        /// The entry point that gattherd calls.
        @c(gattherd_profile_v1)
        public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }

        """
    }

    private var decoded: [(characteristic: SkeletonCharacteristic, stream: String)] {
        named.filter { $0.characteristic.hasValues }
    }

    private var source: String {
        let services = Set(named.map(\.characteristic.service)).map(Self.literal).sorted().joined(separator: ", ")
        let entries = decoded.map { "        \(entry($0.characteristic, $0.stream)),\n" }.joined()
        return """
            import GattherdGATT
            import ProfileKit

            /// Types and names are guesses: correct them.
            public struct \(typeName)Profile: NativeProfile {
                public static let name = "\(name)"
                public static let title = "\(name)"
                public static let services: [BluetoothUUID] = [\(services)]

                public static let characteristics: [ProfileCharacteristic<Self>] = [
            \(entries)    ]
            \(controls)
                public init() {}
            }
            \(decoded.map { decoder($0.characteristic, $0.stream) }.joined())
            """
    }

    private func entry(_ characteristic: SkeletonCharacteristic, _ stream: String) -> String {
        var words = [Self.literal(characteristic.uuid), "in: \(Self.literal(characteristic.service))"]
        words.append("stream: \"\(stream)\"")
        if characteristic.notifies || characteristic.indicates {
            words.append("subscribe: .\(characteristic.notifies ? "notify" : "indicate")")
        }
        if characteristic.isReadable { words.append(".readAtConnect") }
        words.append("tests: \(metrics(stream)).tests")
        return ".init(\(words.joined(separator: ", ")), decode: \(function(stream)))"
    }

    /// The controls; commented out if there are streams, as their value types are unknown.
    private var controls: String {
        let written = named.filter { $0.characteristic.isWritable }
        guard !written.isEmpty else { return "" }
        let prefix = decoded.isEmpty ? "" : "// "
        let entries = written.map { characteristic, stream in
            "    \(prefix)    Control(\"\(stream)\", \(Self.literal(characteristic.uuid)), "
                + "in: \(Self.literal(characteristic.service)), takes: .integer(0...255, as: UInt8.self)),"
        }
        return (["", "    \(prefix)public static let controls = ["] + entries + ["    \(prefix)]", ""]).joined(
            separator: "\n"
        )
    }

    private func decoder(_ characteristic: SkeletonCharacteristic, _ stream: String) -> String {
        let (function, metrics) = (function(stream), metrics(stream))
        let heard = characteristic.values.map { "`\(SwiftGuess.spaced($0))`" }.joined(separator: ", ")
        return """

            /// The metrics of `\(stream)`.
            enum \(metrics): Int, MetricSet {
                case value

                var metric: Metric { Metric("\(stream)") }

                static let tests: [DecodingTest] = [
            \(tests(characteristic, stream))    ]
            }

            extension \(typeName)Profile {
                /// \(heard.isEmpty ? "Decodes a value; none was received yet" : "Decodes values such as \(heard)").
                static func \(function)(_ payload: inout PayloadCursor, _ samples: Samples<\(metrics)>) throws(PayloadError) {
                    \(SwiftGuess(characteristic).statements.joined(separator: "\n        "))
                }
            }

            """
    }

    /// The lines of the tests for `gattherd profile test`.
    private func tests(_ characteristic: SkeletonCharacteristic, _ stream: String) -> String {
        let guess = SwiftGuess(characteristic)
        return characteristic.values.compactMap { octets in
            guess.literal(octets).map { value in
                "        DecodingTest(\"\(SwiftGuess.spaced(octets))\", expect: [\"\(stream)\": \(value)]),\n"
            }
        }.joined()
    }

    private func function(_ stream: String) -> String { functions[stream] ?? Self.camel(stream) }

    private func metrics(_ stream: String) -> String {
        let function = function(stream)
        return function.prefix(1).uppercased() + function.dropFirst() + "Metrics"
    }

    private var packageTests: String {
        let lines = decoded.flatMap { characteristic, stream in
            characteristic.values.compactMap { octets in
                SwiftGuess(characteristic).expectation(octets).map { value in
                    "        #expect(try device.decode([\(SwiftGuess.list(octets))], stream: \"\(stream)\")"
                        + " == [.init(\"\(stream)\", \(value))])"
                }
            }
        }
        return """
            import ProfileKit
            import Testing
            import \(typeName)

            struct \(typeName)ProfileTests {
                @Test func `received values are decoded`() throws {
                    let device = ProfileTester(\(typeName)Profile.self)
            \(lines.isEmpty ? "        _ = device" : lines.joined(separator: "\n"))
                }
            }

            """
    }

    private static func literal(_ uuid: BluetoothUUID) -> String {
        guard uuid.assigned16 == nil else { return "0x\(uuid.description.uppercased())" }
        return "0x" + uuid.canonical.map { $0 == "-" ? "_" : String($0) }.joined()
    }

    private static func camel(_ name: String) -> String {
        let words = name.split(separator: "_")
        let rest = words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }
        let joined = ([words.first.map(String.init) ?? "value"] + rest).joined()
        let isName = joined.first?.isLetter == true && !reserved.contains(joined)
        return isName ? joined : "stream" + joined.prefix(1).uppercased() + joined.dropFirst()
    }

    /// Names of the profile type's members, and likely Swift keywords.
    private static let reserved: Set<String> = [
        "name", "title", "services", "characteristics", "controls", "init", "switch", "default", "case", "in", "is",
        "for", "if", "while", "repeat", "return", "class", "struct", "enum", "func", "var", "let", "true", "false",
        "nil", "self", "public", "private", "internal", "import", "protocol", "static", "where", "as", "do", "throw",
        "operator", "extension", "break", "continue", "guard", "defer", "any", "some", "super", "else", "try", "catch",
    ]
}

/// The Swift code for a guessed ``SkeletonField``.
struct SwiftGuess {
    private let field: SkeletonField

    init(_ characteristic: SkeletonCharacteristic) {
        let fields = SkeletonField.fields(of: characteristic)
        field = fields.count == 1 ? fields[0] : SkeletonField(type: "bytes")
    }

    private static let readers: [String: String] = [
        "u8": "u8", "i8": "i8", "u16le": "u16", "i16le": "i16", "u24le": "u24", "u32le": "u32", "i32le": "i32",
    ]

    /// The statements that emit the value.
    var statements: [String] {
        if let reader = Self.readers[field.type] { return ["samples.emit(.value, try payload.\(reader)())"] }
        if field.type == "utf8" { return ["samples.emit(.value, try payload.text(octets: payload.left))"] }
        return ["let octets = try payload.octets(payload.left)", "samples.emit(.value, Hexadecimal.text(octets.span))"]
    }

    /// Returns the expected value of a payload for a `ProfileTester`; `nil` for a reject.
    func expectation(_ octets: [UInt8]) -> String? {
        let isNumber = Self.readers[field.type] != nil
        return literal(octets).map { isNumber ? ".integer(\($0))" : ".text(\($0))" }
    }

    /// Returns the expected value of a payload as a literal; `nil` for a reject.
    func literal(_ octets: [UInt8]) -> String? {
        var cursor = PayloadCursor(octets.span)
        switch field.type {
        case "u8": return (try? cursor.u8()).map { "\($0)" }
        case "i8": return (try? cursor.i8()).map { "\($0)" }
        case "u16le": return (try? cursor.u16()).map { "\($0)" }
        case "i16le": return (try? cursor.i16()).map { "\($0)" }
        case "u24le": return (try? cursor.u24()).map { "\($0)" }
        case "u32le": return (try? cursor.u32()).map { "\($0)" }
        case "i32le": return (try? cursor.i32()).map { "\($0)" }
        case "utf8": return (try? cursor.text(octets: octets.count)).map { ProfileSkeleton.quoted($0) }
        default: return "\"\(Hexadecimal.text(octets.span))\""
        }
    }

    static func list(_ octets: [UInt8]) -> String {
        octets.map { "0x" + Hexadecimal.text([$0].span).uppercased() }.joined(separator: ", ")
    }

    static func spaced(_ octets: [UInt8]) -> String {
        octets.map { Hexadecimal.text([$0].span).uppercased() }.joined(separator: " ")
    }
}
