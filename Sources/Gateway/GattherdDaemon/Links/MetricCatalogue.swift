import GattherdGATT
import GattherdModel
import GattherdSync

/// The decoder's view of an advertising device.
struct Advertiser: Sendable {
    let sender: Sender
    let metricCatalogue: MetricCatalogue
    /// The index of ``MetricDescriptor/signalStrength``; `nil` if the profile has a metric of that name.
    var signal: Int?
}

/// The streams and metrics that a device has sent so far; a format may define many more.
final class MetricCatalogue: Sendable {
    private struct Heard: Sendable {
        let stream: StreamDefinition
        /// The metrics that were received; `nil` for all of the stream.
        var metrics: Set<Int>?

        /// The metrics that the device has; the storage of all is shared.
        var present: [MetricDescriptor] {
            metrics.map { $0.sorted().map { stream.metrics[$0] } } ?? stream.metrics
        }
    }

    private let heard = Locked<[Heard]>([])
    private let device: String
    private let address: BluetoothAddress
    private let describe: @Sendable (DeviceDescription) -> Void

    init(_ device: SupervisedDevice, _ describe: @escaping @Sendable (DeviceDescription) -> Void) {
        (self.device, address) = (device.name, device.address)
        self.describe = describe
    }

    /// Adds the metrics of a reading and describes the device if one is new.
    func record(_ samples: ArraySlice<Sample>, of stream: StreamDefinition) {
        let isNew = heard.withLock { heard in
            guard let position = heard.firstIndex(where: { $0.stream === stream }) else {
                heard.append(Heard(stream: stream, metrics: stream.isOpen ? Set(samples.map(\.metric)) : nil))
                return true
            }
            let before = heard[position].metrics?.count
            heard[position].metrics?.formUnion(samples.lazy.map(\.metric))
            return heard[position].metrics?.count != before
        }
        if isNew { describe(description) }
    }

    private var description: DeviceDescription {
        let heard = heard.withLock { $0 }
        var description = DeviceDescription(device: device, address: address.description, streams: [])
        description.isConnectable = false
        description.streams = heard.map { DeviceDescription.Stream(name: $0.stream.stream, metrics: $0.present) }
        description.profiles = Set(heard.map(\.stream.profile)).sorted()
        return description
    }
}
