package import GattherdGATT
package import GattherdModel

/// The recorded values of a peripheral, as `gattherd capture` writes them: one JSON object per line.
///
/// The first line describes the peripheral. Each other line is one value.
package struct Capture: Hashable, Sendable {
    package let header: CaptureHeader
    /// The values in the order of their receipt.
    package let values: [CaptureValue]

    /// Reads a whole file.
    ///
    /// - Parameters:
    ///   - octets: The file's contents.
    ///   - file: The file's name, for errors.
    /// - Throws: ``CaptureError`` at the first invalid line.
    package init(_ octets: [UInt8], file: String) throws(CaptureError) {
        var header: CaptureHeader?
        var values: [CaptureValue] = []
        var number = 0
        for line in octets.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            guard !line.isEmpty else { continue }
            switch try CaptureLine(line, number, file: file) {
            case .header(let found): header = header ?? found
            case .value(let value): values.append(value)
            case .advertisements, .advertisement:
                throw CaptureError(file, number, "a capture of advertisements cannot be replayed as a connection")
            }
        }
        guard let header else { throw CaptureError(file, number, "the header line with the peripheral is missing") }
        self.header = header
        self.values = values
    }
}

/// The captured peripheral.
package struct CaptureHeader: Hashable, Sendable {
    /// One service of the peripheral.
    package struct Service: Hashable, Sendable {
        package var uuid: BluetoothUUID
        package var characteristics: [Characteristic]

        package init(_ uuid: BluetoothUUID, _ characteristics: [Characteristic]) {
            self.uuid = uuid
            self.characteristics = characteristics
        }
    }

    /// One characteristic of a service.
    package struct Characteristic: Hashable, Sendable {
        package var uuid: BluetoothUUID
        /// The properties with BlueZ's names, for example `read` and `write-without-response`.
        package var properties: [String]

        package init(_ uuid: BluetoothUUID, properties: [String]) {
            self.uuid = uuid
            self.properties = properties
        }
    }

    package var address: BluetoothAddress
    /// The advertised name.
    package var name: String?
    package var services: [Service]

    package init(address: BluetoothAddress, name: String?, services: [Service]) {
        self.address = address
        self.name = name
        self.services = services
    }
}

/// One received value.
package struct CaptureValue: Hashable, Sendable {
    package var time: Timestamp
    package var service: BluetoothUUID
    package var characteristic: BluetoothUUID
    package var source: ReadingSource
    package var octets: [UInt8]

    package init(
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

/// An error in a capture.
package struct CaptureError: Error, Hashable, Sendable, CustomStringConvertible {
    package let file: String
    /// The line's number, from 1; `nil` in a file without lines.
    package let line: Int?
    package let reason: String

    init(_ file: String, _ line: Int? = nil, reason: String) {
        self.file = file
        self.line = line
        self.reason = reason
    }

    init(_ file: String, _ line: Int, _ reason: String) {
        self.init(file, line, reason: reason)
    }

    package var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): error: \(reason)" }
}

extension Capture {
    /// The values of one characteristic.
    package struct Track: Hashable, Sendable {
        /// The first value that was read; empty if none was.
        package let stored: [UInt8]
        /// The notified and indicated values, in order.
        package let sent: [[UInt8]]
        /// The pause after each of ``sent``.
        ///
        /// The last pause is the mean of the others.
        package let pauses: [Duration]
    }

    /// Returns the values of a characteristic of a service.
    package func track(of characteristic: BluetoothUUID, in service: BluetoothUUID) -> Track {
        let values = values.filter { $0.characteristic == characteristic && $0.service == service }
        let sent = values.filter { $0.source != .read }
        let pauses = zip(sent, sent.dropFirst()).map { earlier, later in
            Duration.microseconds(max(0, later.time.microseconds - earlier.time.microseconds))
        }
        let sum = pauses.reduce(Duration.zero, +)
        let mean = sum == .zero ? Duration.seconds(1) : sum / pauses.count
        return Track(
            stored: values.first { $0.source == .read }?.octets ?? [],
            sent: sent.map(\.octets),
            pauses: sent.isEmpty ? [] : pauses + [mean]
        )
    }
}
