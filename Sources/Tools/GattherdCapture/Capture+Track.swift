public import GattherdGATT
import GattherdModel

extension Capture {
    /// What one characteristic said.
    public struct Track: Hashable, Sendable {
        /// What was read of it first; empty when nothing was.
        public let stored: [UInt8]
        /// What it said by itself, in order.
        public let told: [[UInt8]]
        /// The pause after each of ``told``; the one after the last is as long as the others on average.
        public let pauses: [Duration]
    }

    /// What a characteristic of a service said.
    public func track(of characteristic: BluetoothUUID, in service: BluetoothUUID) -> Track {
        let values = values.filter { $0.characteristic == characteristic && $0.service == service }
        let told = values.filter { $0.source != .read }
        let pauses = zip(told, told.dropFirst()).map { earlier, later in
            Duration.microseconds(max(0, later.time.microseconds - earlier.time.microseconds))
        }
        let sum = pauses.reduce(Duration.zero, +)
        let mean = sum == .zero ? Duration.seconds(1) : sum / pauses.count
        return Track(
            stored: values.first { $0.source == .read }?.octets ?? [],
            told: told.map(\.octets),
            pauses: told.isEmpty ? [] : pauses + [mean]
        )
    }
}
