public import GattherdGATT
import GattherdModel

extension Capture {
    /// The values of one characteristic.
    public struct Track: Hashable, Sendable {
        /// The first value that was read; empty if none was.
        public let stored: [UInt8]
        /// The notified and indicated values, in order.
        public let sent: [[UInt8]]
        /// The pause after each of ``sent``.
        ///
        /// The last pause is the mean of the others.
        public let pauses: [Duration]
    }

    /// Returns the values of a characteristic of a service.
    public func track(of characteristic: BluetoothUUID, in service: BluetoothUUID) -> Track {
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
