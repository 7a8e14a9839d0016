import GattherdGATT
import GattherdModel
import GattherdYAML

/// One line of a capture.
public enum CaptureLine: Hashable, Sendable {
    case header(CaptureHeader)
    case value(CaptureValue)

    /// Parses a line.
    ///
    /// Unknown members are ignored.
    ///
    /// - Parameters:
    ///   - octets: The line, without its line break.
    ///   - number: Its number in the file, from 1.
    ///   - file: The file's name, for errors.
    /// - Throws: ``CaptureError`` if the line is invalid.
    public init(_ octets: ArraySlice<UInt8>, _ number: Int, file: String) throws(CaptureError) {
        let node: YAMLNode?
        do throws(YAMLError) {
            // JSON is a subset of YAML, except for details that captures do not use.
            node = try YAML.parse(Array(octets))
        } catch {
            throw CaptureError(file, number, "invalid JSON: \(error.problem)")
        }
        guard let node, node.members != nil else { throw CaptureError(file, number, "not a JSON object") }
        let reader = CaptureLineReader(node: node, file: file, line: number)
        self = node["capture"] == nil ? .value(try reader.value()) : .header(try reader.header())
    }
}

/// Parses the members of one line.
struct CaptureLineReader {
    private static let version = "1"

    let node: YAMLNode
    let file: String
    let line: Int

    func value() throws(CaptureError) -> CaptureValue {
        CaptureValue(
            time: try member("ts", "a time such as 2026-11-21T03:20:05.123456Z") { Timestamp(rfc3339: $0.utf8) },
            service: try member("service", "a UUID") { BluetoothUUID($0) },
            characteristic: try member("characteristic", "a UUID") { BluetoothUUID($0) },
            source: try member("source", "notify, indicate or read") { ReadingSource(rawValue: $0) },
            octets: try member("hex", "octets in hexadecimal") { Hexadecimal.octets($0) }
        )
    }

    func header() throws(CaptureError) -> CaptureHeader {
        guard node["capture"]?.text == Self.version else {
            throw error("unsupported capture version; this gattherd reads version \(Self.version)")
        }
        let address = try member("address", "a Bluetooth address") { BluetoothAddress($0) }
        let name = node["name"].flatMap { $0.isNull ? nil : $0.text }
        var services: [CaptureHeader.Service] = []
        for service in node["services"]?.elements ?? [] { services.append(try self.service(service)) }
        return CaptureHeader(address: address, name: name, services: services)
    }

    private func service(_ node: YAMLNode) throws(CaptureError) -> CaptureHeader.Service {
        var characteristics: [CaptureHeader.Characteristic] = []
        for entry in node["characteristics"]?.elements ?? [] {
            let properties = (entry["properties"]?.elements ?? []).compactMap(\.text)
            characteristics.append(CaptureHeader.Characteristic(try uuid(of: entry), properties: properties))
        }
        return CaptureHeader.Service(try uuid(of: node), characteristics)
    }

    private func uuid(of node: YAMLNode) throws(CaptureError) -> BluetoothUUID {
        guard let uuid = node["uuid"]?.text.flatMap({ BluetoothUUID($0) }) else {
            throw error("a service or characteristic has no \"uuid\"")
        }
        return uuid
    }

    private func member<Value>(
        _ name: String,
        _ expected: String,
        _ parse: (String) -> Value?
    ) throws(CaptureError) -> Value {
        guard let text = node[name]?.text else { throw error("\"\(name)\" is missing: \(expected)") }
        guard let value = parse(text) else { throw error("\"\(name)\" is '\(text)'; expected \(expected)") }
        return value
    }

    private func error(_ reason: String) -> CaptureError { CaptureError(file, line, reason) }
}
