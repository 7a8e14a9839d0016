import GattherdGATT
import GattherdModel
import GattherdSync

/// The decoder's view of an advertising device.
struct Advertiser: Sendable {
    let sender: Sender
    let metricCatalogue: MetricCatalogue
    /// True if the stream lists all metrics of its format; the device has only the metrics that were received.
    let isOpen: Bool
    /// The index of ``MetricDescriptor/signalStrength``; `nil` if the profile has a metric of that name.
    var signal: Int?
}

/// The streams and metrics that a device has sent so far; a format may define many more.
final class MetricCatalogue: Sendable {
    private struct Shared: Sendable {
        var streams: [StreamDefinition] = []
        var seen: [Set<Int>] = []
    }

    private let shared = Locked(Shared())
    private let device: SupervisedDevice
    private let describe: @Sendable (DeviceDescription) -> Void

    init(_ device: SupervisedDevice, _ describe: @escaping @Sendable (DeviceDescription) -> Void) {
        self.device = device
        self.describe = describe
    }

    /// Adds the metrics of a reading and describes the device if one is new.
    func record(_ samples: ArraySlice<Sample>, of stream: StreamDefinition, isOpen: Bool) {
        let isNew = shared.withLock { shared in
            if let position = shared.streams.firstIndex(where: { $0 === stream }) {
                guard isOpen else { return false }
                let before = shared.seen[position].count
                shared.seen[position].formUnion(samples.map(\.metric))
                return shared.seen[position].count > before
            }
            shared.streams.append(stream)
            shared.seen.append(Set(isOpen ? samples.map(\.metric) : Array(stream.metrics.indices)))
            return true
        }
        if isNew { describe(description) }
    }

    private var description: DeviceDescription {
        var description = DeviceDescription(device: device.name, address: device.address.description, streams: [])
        description.isConnectable = false
        shared.withLock { shared in
            description.streams = zip(shared.streams, shared.seen).map { stream, seen in
                DeviceDescription.Stream(name: stream.stream, metrics: seen.sorted().map { stream.metrics[$0] })
            }
            description.profiles = Set(shared.streams.map(\.profile)).sorted()
        }
        return description
    }
}
