import GattherdModel
import GattherdSync

/// The streams of one profile's advertisements; all devices share their metrics.
///
/// A format may define hundreds of metrics, and a gateway may hear thousands of devices. A stream is made for the
/// first device that has it, because most of the loaded profiles serve none.
final class AdvertisedStreams: Sendable {
    private let made = Locked<[Int: StreamDefinition]>([:])

    /// Returns the stream of advertisement `index` from a device.
    func stream(_ index: Int, of profile: some Profile, from device: String) -> StreamDefinition {
        made.withLock { made in
            if let known = made[index] { return StreamDefinition(known, of: device) }
            let stream = StreamDefinition(device: device, profile: profile.name, profile.advertisements[index])
            made[index] = stream
            return stream
        }
    }
}
