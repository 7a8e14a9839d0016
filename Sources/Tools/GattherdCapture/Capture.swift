public import GattherdGATT
public import GattherdModel

/// What a peripheral said while somebody listened, as `gattherd capture` writes it: JSON, one object to a line.
///
/// The first line says who was listened to and what it has; each other line is one value.
public struct Capture: Hashable, Sendable {
    public let header: CaptureHeader
    /// As they came.
    public let values: [CaptureValue]

    /// Reads a whole file.
    ///
    /// - Parameters:
    ///   - octets: Its text.
    ///   - file: What errors call it.
    /// - Throws: ``CaptureError`` at the first line that is none.
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
        guard let header else { throw CaptureError(file, number, "it has no line that says who was listened to") }
        self.header = header
        self.values = values
    }
}

/// Who was listened to.
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
        /// In BlueZ's words: `read`, `write-without-response`, `notify`.
        public var properties: [String]

        public init(_ uuid: BluetoothUUID, properties: [String]) {
            self.uuid = uuid
            self.properties = properties
        }
    }

    public var address: BluetoothAddress
    /// What it calls itself.
    public var name: String?
    public var services: [Service]

    public init(address: BluetoothAddress, name: String?, services: [Service]) {
        self.address = address
        self.name = name
        self.services = services
    }
}

/// One value that was heard.
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

/// What is wrong with a line of a capture.
public struct CaptureError: Error, Hashable, Sendable, CustomStringConvertible {
    public let file: String
    /// Counted from 1.
    public let line: Int
    public let reason: String

    init(_ file: String, _ line: Int, _ reason: String) {
        self.file = file
        self.line = line
        self.reason = reason
    }

    public var description: String { "\(file):\(line): error: \(reason)" }
}
