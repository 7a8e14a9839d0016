import GattherdBluetooth
import GattherdCapture
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// Decodes the advertisements of any number of devices, as the daemon does.
struct AdvertisementReplay {
    /// The profiles of a device, and its key.
    struct Device {
        var profiles: [any Profile]
        var key: BindKey?
        /// The recognised model, if no one chose the profiles.
        var model: ModelDescriptor?
    }

    /// The result for one payload of an advertisement.
    struct Outcome {
        enum Result {
            case decoded([NamedSample])
            case rejected(String)
            /// The same reading as before.
            case repeated
        }

        let profile: any Profile
        let index: Int
        let stream: String
        let model: ModelDescriptor?
        let payload: [UInt8]
        let result: Result

        var metrics: [MetricDescriptor] { profile.advertisements[index].metrics }
    }

    /// The state of one sender.
    private struct Sender {
        var name: String?
        var services: [BluetoothUUID] = []
        var device = Device(profiles: [])
        var frames = AdvertisedFrames([])
        var filter = FrameFilter()
        var decoders: [Int: any PayloadDecoder] = [:]
        /// The number of the last advertisement.
        var last = 0
    }

    /// The maximum number of senders that are kept: those heard last.
    static let mostSenders = 4096

    /// The maximum number of services that are kept of one sender.
    private static let mostServices = 256

    private let registry: ProfileRegistry
    /// The devices with known profiles; others are recognised.
    private let devices: [BluetoothAddress: Device]
    /// The profile, and the key, of all devices; `nil` if the profiles of the registry are used.
    private let chosen: Device?
    private var senders: [BluetoothAddress: Sender] = [:]
    /// The number of advertisements so far.
    private var count = 0
    private let start = SuspendingClock.now

    /// - Parameters:
    ///   - registry: The profiles whose models are recognised.
    ///   - configuration: The devices whose profiles and keys are known.
    ///   - profile: The profile of all devices; `nil` for that of each.
    ///   - key: The key of all devices; `nil` for that of each.
    init(
        _ registry: ProfileRegistry,
        _ configuration: Configuration? = nil,
        profile: (any Profile)? = nil,
        key: BindKey? = nil
    ) {
        self.registry = registry
        let known = (configuration?.devices ?? []).filter { $0.isListenedTo(with: registry) }
        devices = Dictionary(known.map { ($0.address.value, Device($0, registry)) }) { first, _ in first }
        chosen = profile.map { Device(profiles: [$0], key: key) } ?? key.map { Device(profiles: [], key: $0) }
    }

    /// Records the name and the services that a device has sent, as bluetoothd does.
    mutating func learn(_ captured: CapturedAdvertisement, name: String? = nil) {
        let data = AdvertisingData(captured.octets)
        var sender = senders[captured.sender] ?? Sender()
        sender.name = name ?? data.name ?? sender.name
        for service in data.services where !sender.services.contains(service) {
            if sender.services.count < Self.mostServices { sender.services.append(service) }
        }
        count += 1
        sender.last = count
        senders[captured.sender] = sender
        removeOldSenders()
    }

    /// The number of senders that are kept.
    var senderCount: Int { senders.count }

    /// Removes the older half of too many senders: private addresses change, and a capture may have no end.
    private mutating func removeOldSenders() {
        guard senders.count > Self.mostSenders else { return }
        let middle = senders.values.map(\.last).sorted()[senders.count / 2]
        senders = senders.filter { $0.value.last >= middle }
    }

    /// Returns the outcome of each payload, also if there is none, as in a scan response; `nil` if no profile is known.
    mutating func decode(_ captured: CapturedAdvertisement) -> [Outcome]? {
        learn(captured)
        let (address, data) = (captured.sender, AdvertisingData(captured.octets))
        var sender = senders[address] ?? Sender()
        defer { senders[address] = sender }
        recognise(&sender, address, data)
        guard !sender.device.profiles.isEmpty else { return nil }
        let heard = HeardAdvertisement(
            peripheral: PeripheralID(adapter: BluetoothAddress(value: 0), address: address),
            name: sender.name,
            rssi: captured.rssi,
            frames: data.frames.map { HeardAdvertisement.Frame($0.source, $0.octets) }
        )
        let now = start + .microseconds(captured.time?.microseconds ?? 0)
        return sender.filter.payloads(of: heard, sender.frames, now: now).map { payload, isNew in
            outcome(payload, isNew: isNew || captured.time == nil, &sender, address)
        }
    }

    /// Returns the model or kind of a sender whose profile needs a connection; `nil` for other senders.
    func connectedIdentity(of captured: CapturedAdvertisement) -> Identification? {
        let found = identity(of: senders[captured.sender] ?? Sender(), AdvertisingData(captured.octets))
        return found?.isForAdvertisements == false ? found : nil
    }

    private func identity(of sender: Sender, _ data: AdvertisingData) -> Identification? {
        registry.identify(AdvertisedTraits(name: sender.name, services: sender.services, data))
    }

    /// Returns the profiles of a sender that is not configured; `nil` if none decodes its advertisements.
    private func recognised(_ sender: Sender, _ data: AdvertisingData) -> Device? {
        guard let found = identity(of: sender, data), found.isForAdvertisements, let profile = registry[found.profile]
        else { return nil }
        return Device(profiles: [profile], key: chosen?.key, model: found.model)
    }

    private func recognise(_ sender: inout Sender, _ address: BluetoothAddress, _ data: AdvertisingData) {
        let named = chosen.flatMap { $0.profiles.isEmpty ? nil : $0 } ?? devices[address]
        guard let device = named ?? recognised(sender, data) else { return }
        if sender.device.model == nil || device.model != nil { sender.device.model = device.model }
        guard device.profiles.map(ProfileIdentity.init) != sender.device.profiles.map(ProfileIdentity.init) else {
            return
        }
        // A part of an advertisement, or a later name, may recognise less than an earlier one.
        guard sender.device.profiles.isEmpty || device.model != nil else { return }
        sender.device = device
        (sender.frames, sender.filter, sender.decoders) = (AdvertisedFrames(device.profiles), FrameFilter(), [:])
    }

    private func outcome(
        _ payload: AdvertisedFrames.Payload,
        isNew: Bool,
        _ sender: inout Sender,
        _ address: BluetoothAddress
    ) -> Outcome {
        let (position, index) = (payload.frame.profile, payload.frame.index)
        let profile = sender.device.profiles[position]
        let decoder =
            sender.decoders[position]
            ?? profile.makeDecoder(for: GattherdModel.Sender(address: address, key: sender.device.key))
        sender.decoders[position] = decoder
        let result = isNew ? Self.result(payload.octets, index, decoder, profile) : .repeated
        return Outcome(
            profile: profile,
            index: index,
            stream: sender.frames.stream(of: payload.frame),
            model: sender.device.model,
            payload: payload.octets,
            result: result
        )
    }

    private static func result(
        _ payload: [UInt8],
        _ index: Int,
        _ decoder: any PayloadDecoder,
        _ profile: any Profile
    ) -> Outcome.Result {
        var samples: [Sample] = []
        do throws(PayloadError) {
            try decoder.decode(payload.span, characteristic: index, into: &samples)
            let named = try [NamedSample](samples, of: profile.advertisements[index].metrics)
            return named.isEmpty ? .repeated : .decoded(named)
        } catch {
            return .rejected(error.description)
        }
    }
}

extension CapturedAdvertisement {
    /// The address; zeros if it was not recorded.
    fileprivate var sender: BluetoothAddress { address ?? BluetoothAddress(value: 0) }
}

extension AdvertisementReplay.Device {
    /// Creates a configured device.
    fileprivate init(_ settings: DeviceSettings, _ registry: ProfileRegistry) {
        let options = settings.options.mapValues(\.value)
        profiles = (settings.profiles ?? []).compactMap { registry[$0.value]?.configured(with: options) }
        key = settings.bindKeyFile.flatMap { BindKeyFile($0).key }
    }
}
