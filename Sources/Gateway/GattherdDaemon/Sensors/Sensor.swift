import GattherdBluetooth
import GattherdGATT
import GattherdModel
import GattherdSync

/// A device that is never connected, and the destination of its advertisements.
///
/// A class, because its task, the watch and their async functions all hold it.
final class Sensor: Sendable {
    /// The time without an advertisement after which a sensor without a profile is away.
    private static let standardSilence = Duration.seconds(300)

    let device: SupervisedDevice
    /// The frames that the device's profiles decode.
    let frames: AdvertisedFrames
    /// The configured time without an advertisement after which the sensor is away; `nil` for that of its frames.
    let silence: Duration?
    let bindings: [AdvertisedFrames.ID: StreamBinding]
    /// The streams and metrics heard so far.
    let metricCatalogue: MetricCatalogue
    /// The first advertisement after each absence.
    let arrivals: AsyncStream<HeardAdvertisement>
    let wake: AsyncStream<HeardAdvertisement>.Continuation

    /// - Parameters:
    ///   - device: The device; the result is `nil` for one that is connected.
    ///   - all: All profiles.
    ///   - makeDecoderID: Returns a new decoder's number.
    ///   - describe: Publishes the device's description; called again for new metrics.
    init?(
        _ device: SupervisedDevice,
        _ all: [any Profile],
        makeDecoderID: () -> Int,
        describe: @escaping @Sendable (DeviceDescription) -> Void
    ) {
        guard let listening = device.listening else { return nil }
        self.device = device
        let profiles = Self.profiles(of: device, from: all)
        let frames = AdvertisedFrames(profiles)
        self.frames = frames
        silence = listening.silence
        let metricCatalogue = MetricCatalogue(device, describe)
        self.metricCatalogue = metricCatalogue
        let sender = Sender(address: device.address, key: listening.key)
        var bindings: [AdvertisedFrames.ID: StreamBinding] = [:]
        for (position, profile) in profiles.enumerated() {
            let decoder = makeDecoderID()
            for index in profile.advertisements.indices {
                let frame = AdvertisedFrames.ID(profile: position, index: index)
                bindings[frame] = StreamBinding(
                    of: device,
                    profile,
                    named: frames.stream(of: frame),
                    advertisement: index,
                    decoder: decoder,
                    sender: sender,
                    metricCatalogue: metricCatalogue
                )
            }
        }
        self.bindings = bindings
        (arrivals, wake) = AsyncStream.makeStream(of: HeardAdvertisement.self, bufferingPolicy: .bufferingNewest(1))
    }

    var profiles: [any Profile] { frames.profiles }

    /// The time without an advertisement after which the sensor is away as long as no frame of its profiles was heard.
    var shortestSilence: Duration {
        profiles.flatMap(\.advertisements).map(\.silence).min() ?? Self.standardSilence
    }

    /// Returns the time after which a repetition of a frame lets its events last; `nil` for a frame without events.
    ///
    /// Repetitions with an equal counter report no further event.
    func eventPause(of frame: AdvertisedFrames.ID) -> Duration? {
        guard let reset = bindings[frame]?.shortestReset, !frames[frame].isCounted else { return nil }
        return reset / 4
    }

    /// The decoders of the sensor's profiles.
    var decoders: [Int] { bindings.values.map(\.decoder) }

    private static func profiles(of device: SupervisedDevice, from all: [any Profile]) -> [any Profile] {
        let named = (device.profileNames ?? []).compactMap { name in
            all.first { $0.name == name && $0.isForAdvertisements }
        }
        return named.map { $0.configured(with: device.options) }
    }

    /// Returns true if the configuration and the profiles are the same for `device`.
    func isMade(of device: SupervisedDevice, _ all: [any Profile]) -> Bool {
        self.device.name == device.name && self.device.isConfigured(as: device)
            && profiles.map(ProfileIdentity.init) == Self.profiles(of: device, from: all).map(ProfileIdentity.init)
    }

    func mayBeHeard(_ advertisement: HeardAdvertisement) -> Bool {
        device.adapter.map { $0 == advertisement.peripheral.adapter } ?? true
    }
}

extension StreamBinding {
    fileprivate convenience init(
        of device: SupervisedDevice,
        _ profile: any Profile,
        named name: String,
        advertisement: Int,
        decoder: Int,
        sender: Sender,
        metricCatalogue: MetricCatalogue
    ) {
        let descriptor = profile.advertisements[advertisement]
        let stream = profile.stream(ofAdvertisement: advertisement, from: device.name)
        self.init(
            stream: stream.stream == name ? stream : StreamDefinition(stream, of: device.name, named: name),
            profile: profile,
            characteristic: advertisement,
            decoder: decoder,
            source: .advert,
            meter: device.meter,
            echo: nil,
            advertiser: Advertiser(
                sender: sender,
                metricCatalogue: metricCatalogue,
                signal: descriptor.signal
            )
        )
    }
}
