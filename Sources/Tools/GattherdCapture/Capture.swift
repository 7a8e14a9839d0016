public import GattherdGATT
public import GattherdModel

/// The recorded values of a peripheral, as `gattherd capture` writes them: one JSON object per line.
///
/// The first line describes the peripheral. Each other line is one value.
public struct Capture: Hashable, Sendable {
    public let header: CaptureHeader
    /// The values in the order of their receipt.
    public let values: [CaptureValue]

    /// Reads a whole file.
    ///
    /// - Parameters:
    ///   - octets: The file's contents.
    ///   - file: The file's name, for errors.
    /// - Throws: ``CaptureError`` at the first invalid line.
    public init(_ octets: [UInt8], file: String) throws(CaptureError) {
        var header: CaptureHeader?
        var values: [CaptureValue] = []
        var number = 0
        for line in octets.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            guard !line.isEmpty else { continue }
            switch try CaptureLine(line, number, file: file) {
            case .header(let found): header = header ?? found
            case .value(let value): values.append(value)
            }
        }
        guard let header else { throw CaptureError(file, number, "the header line with the peripheral is missing") }
        self.header = header
        self.values = values
    }
}

/// The captured peripheral.
public struct CaptureHeader: Hashable, Sendable {
    /// One service of the peripheral.
    public struct Service: Hashable, Sendable {
        public var uuid: BluetoothUUID
        public var characteristics: [Characteristic]

        public init(_ uuid: BluetoothUUID, _ characteristics: [Characteristic]) {
            self.uuid = uuid
            self.characteristics = characteristics
        }
    }

    /// One characteristic of a service.
    public struct Characteristic: Hashable, Sendable {
        public var uuid: BluetoothUUID
        /// The properties with BlueZ's names, for example `read` and `write-without-response`.
        public var properties: [String]

        public init(_ uuid: BluetoothUUID, properties: [String]) {
            self.uuid = uuid
            self.properties = properties
        }
    }

    public var address: BluetoothAddress
    /// The advertised name.
    public var name: String?
    public var services: [Service]

    public init(address: BluetoothAddress, name: String?, services: [Service]) {
        self.address = address
        self.name = name
        self.services = services
    }
}

/// One received value.
public struct CaptureValue: Hashable, Sendable {
    public var time: Timestamp
    public var service: BluetoothUUID
    public var characteristic: BluetoothUUID
    public var source: ReadingSource
    public var octets: [UInt8]

    public init(
        time: Timestamp,
        service: BluetoothUUID,
        characteristic: BluetoothUUID,
        source: ReadingSource,
        octets: [UInt8]
    ) {
        self.time = time
        self.service = service
        self.characteristic = characteristic
        self.source = source
        self.octets = octets
    }
}

/// An error in a line of a capture.
public struct CaptureError: Error, Hashable, Sendable, CustomStringConvertible {
    public let file: String
    /// The line's number, from 1.
    public let line: Int
    public let reason: String

    init(_ file: String, _ line: Int, _ reason: String) {
        self.file = file
        self.line = line
        self.reason = reason
    }

    public var description: String { "\(file):\(line): error: \(reason)" }
}
