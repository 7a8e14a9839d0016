import Foundation
import GattherdMQTT
import GattherdModel
import GattherdProcess
import TestKit
import Testing

@testable import GattherdSparkplug

/// All messages of a run, decoded by libraries that others wrote; `make test-sparkplug` installs them.
@Suite(.timeLimit(.minutes(2))) struct InteropTests {
    /// The folder with a Python environment for each library.
    private static let decoders = ProcessInfo.processInfo.environment["GATTHERD_SPARKPLUG_DECODERS"]

    @Test(.enabled(if: decoders != nil), arguments: ["pysparkplug", "wrapper"], [MQTTVersion.v311, .v5])
    func `an independent library decodes all messages correctly`(
        library: String,
        version: MQTTVersion
    ) async throws {
        let capture = try await WireCapture.shared(version)
        let folder = try TemporaryFolder()
        let lines = capture.publishes.map { "\($0.type) \($0.scope) \($0.bytes.hexadecimal)\n" }.joined()
        let input = try folder.write(lines, to: "messages")
        let output = folder.file("decoded")
        let decoders = try #require(Self.decoders)
        let python = "\(decoders)/\(library)/bin/python"
        let command = "exec \"$0\" -B Tests/Sparkplug/decode.py \"$1\" <\"$2\" >\"$3\""
        let status = try await ChildProcess("sh", ["-c", command, python, library, input, output]).wait()
        #expect(status == .exited(0))
        let decoded = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        try #require(decoded.count == capture.publishes.count)
        var births: [String: [UInt64: SparkplugMetric]] = [:]
        for (message, line) in zip(capture.publishes, decoded) {
            if message.type.hasSuffix("BIRTH") {
                let known = message.payload.metrics.compactMap { metric in metric.alias.map { ($0, metric) } }
                births[message.scope] = Dictionary(known) { first, _ in first }
            }
            let expected = Meaning(message.payload, births[message.scope] ?? [:], isDeath: message.type == "NDEATH")
            let found = Meaning(try JSONReader.value(of: Array(line.utf8)))
            #expect(found == expected)
        }
    }
}

/// The content of a message, whoever has decoded it.
private struct Meaning: Hashable {
    struct Value: Hashable {
        let name: String
        let timestamp: Int64
        let isHistorical: Bool
        let value: JSONValue
    }

    let seq: Int64
    let timestamp: Int64
    let values: [Value]

    init(_ payload: SparkplugPayload, _ births: [UInt64: SparkplugMetric], isDeath: Bool) {
        seq = isDeath ? -1 : Int64(payload.seq ?? 0)
        timestamp = isDeath ? -1 : Int64(payload.timestamp ?? 0)
        values = payload.metrics.map { metric in
            let definition = metric.name == nil ? births[metric.alias ?? 0] : metric
            return Value(
                name: definition?.name ?? "",
                timestamp: isDeath ? -1 : Int64(metric.timestamp ?? 0),
                isHistorical: metric.isHistorical,
                value: metric.json
            )
        }
    }

    init(_ json: JSONValue) {
        seq = json["seq"].integer ?? -1
        timestamp = json["timestamp"].integer ?? -1
        guard case .array(let metrics) = json["metrics"] else {
            values = []
            return
        }
        values = metrics.map { metric in
            let name = if case .string(let text) = metric["name"] { text } else { "" }
            return Value(
                name: name,
                timestamp: metric["timestamp"].integer ?? -1,
                isHistorical: metric["historical"] == .boolean(true),
                value: metric["value"]
            )
        }
    }
}

extension SparkplugMetric {
    fileprivate var json: JSONValue {
        switch value {
        case nil: .null
        case .int(let number): .integer(Int64(number))
        case .long(let number): .integer(Int64(bitPattern: number))
        case .float(let number): .real(Double(number))
        case .double(let number): .real(number)
        case .boolean(let flag): .boolean(flag)
        case .string(let text): .string(text)
        // The only array of the run is that of the intervals.
        case .bytes: .array([.real(0.8), .real(0.9)])
        }
    }
}

extension JSONValue {
    fileprivate subscript(name: String) -> JSONValue {
        guard case .object(let members) = self else { return .null }
        return members.first { $0.name == name }?.value ?? .null
    }

    fileprivate var integer: Int64? {
        guard case .integer(let number) = self else { return nil }
        return number
    }
}

extension WireCapture.Publish {
    /// The device of the message, or the node.
    fileprivate var scope: String { device ?? "." }
}

extension [UInt8] {
    fileprivate var hexadecimal: String { map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}
