import GattherdBluetooth
import GattherdGATT
import GattherdModel

/// The assignment of a peripheral's characteristics to profiles.
///
/// The peripheral determines the number of characteristics, so all work here is linear in it.
struct ProfileAssignment: Sendable {
    /// The maximum number of streams of one device.
    ///
    /// Each stream costs a write to the peripheral per connection, a series in history and topics.
    static let maximumStreams = 256

    private(set) var profiles: [any Profile] = []
    private(set) var streams: [Stream] = []
    private(set) var controls: [Control] = []
    private(set) var tasks: [Task] = []
    private(set) var downloads: [Download] = []
    /// The awaited responses of this connection.
    let answers = ResponseAwaiter()
    /// The order of requests and controls, if streams are polled.
    let turn = RequestTurn()
    /// The handles of the characteristics that profiles would serve beyond ``maximumStreams``.
    private(set) var unserved: Set<String> = []
    private let table: CharacteristicIndex
    /// The handles of the characteristics that streams use.
    private var streamed: Set<String> = []
    private var names = StreamNames()
    /// The candidates that serve the device.
    private var basis: [ProfileIdentity] = []

    /// Assigns the characteristics of a GATT table; each serves the first profile that wants it.
    ///
    /// - Parameters:
    ///   - candidates: Profiles in order of preference.
    ///   - areChosen: True if the configuration names them for this device: then all must fit.
    ///   - table: The peripheral's characteristics.
    /// - Throws: A permanent ``LinkFault`` if a required characteristic is missing.
    init(candidates: [any Profile], areChosen: Bool, table: [RemoteCharacteristic]) throws(LinkFault) {
        try self.init(candidates: candidates, areChosen: areChosen, CharacteristicIndex(table))
    }

    private init(candidates: [any Profile], areChosen: Bool, _ table: CharacteristicIndex) throws(LinkFault) {
        let matching = candidates.filter { table.matches($0) }
        // Profiles that match a service are more specific than those that match only a characteristic.
        let inOrder = matching.filter { !$0.services.isEmpty } + matching.filter { $0.services.isEmpty }
        self.table = table
        for profile in areChosen ? candidates : inOrder { try add(profile) }
        for profile in profiles { addFurther(profile) }
        if !polls.isEmpty {
            controls = controls.map { $0.ordered(by: turn) }
        }
        basis = profiles.map(ProfileIdentity.init)
    }

    /// Returns true if `candidates` would serve the peripheral in the same way.
    func isMade(of candidates: [any Profile], areChosen: Bool) -> Bool {
        let other = try? ProfileAssignment(candidates: candidates, areChosen: areChosen, table)
        return other?.basis == basis
    }

    /// Checks that at least one stream or control is served.
    ///
    /// - Throws: A permanent ``LinkFault`` if nothing is served.
    func checkThatItServes() throws(LinkFault) {
        guard streams.isEmpty, controls.isEmpty else { return }
        let found = table.servicesInWords
        let idle = profiles.map(\.name).joined(separator: ", ")
        let reason =
            idle.isEmpty
            ? "no profile fits its services (\(found)); add a profile, or see `gattherd profile list`"
            : "its profiles (\(idle)) fit none of its characteristics; `gattherd inspect` lists those in \(found)"
        throw LinkFault(.profileMismatch, reason, isPermanent: true)
    }

    /// The handles of the characteristics that profiles decode or write.
    var servedHandles: Set<String> { streamed.union(controls.map(\.remote.handle)) }

    /// The names of all streams.
    var streamNames: Set<String> { names.all }

    /// Assigns the characteristics that a profile needs.
    mutating func add(_ profile: any Profile) throws(LinkFault) {
        let served = streams.count + controls.count
        defer { if !profile.services.isEmpty || streams.count + controls.count > served { profiles.append(profile) } }
        for (index, wanted) in profile.characteristics.enumerated() {
            let isShared = wanted.isOnlyDownloaded
            let candidates = table.candidates(wanted, for: profile)
            if let remote = candidates.first(where: { isShared || !streamed.contains($0.handle) }) {
                addStream(profile, index, remote, isFirst: true)
            } else if wanted.isRequired, !table.contains(wanted.uuid) {
                throw Self.missing(wanted.uuid, for: profile)
            }
        }
        for (index, wanted) in profile.controls.enumerated() {
            let remote = table.find(wanted.characteristic, in: wanted.service, for: profile, \.isWritable)
            let isTaken = controls.contains { $0.descriptor.name == wanted.name }
            guard let remote, !isTaken else { continue }
            let exchange = exchange(wanted.answer, for: profile)
            controls.append(Control(profile: profile, index: index, remote: remote, exchange: exchange))
        }
        for task in profile.tasks { try add(task, of: profile) }
        downloads += profile.downloads.compactMap { download($0, of: profile) }
    }

    /// Assigns further characteristics of one kind, such as a second thermometer: `temperature_2` and so on.
    ///
    /// This is the last step, so that other profiles have chosen their characteristics before.
    private mutating func addFurther(_ profile: any Profile) {
        for (index, wanted) in profile.characteristics.enumerated() {
            for remote in table.candidates(wanted, for: profile)
            where !wanted.isOnlyDownloaded && !streamed.contains(remote.handle) {
                if streams.count < Self.maximumStreams {
                    addStream(profile, index, remote, isFirst: false)
                } else {
                    unserved.insert(remote.handle)
                }
            }
        }
    }

    private mutating func addStream(
        _ profile: any Profile,
        _ index: Int,
        _ remote: RemoteCharacteristic,
        isFirst: Bool
    ) {
        let wanted = profile.characteristics[index].stream
        let name = names.add(wanted, isFirst: isFirst)
        streamed.insert(remote.handle)
        streams.append(Stream(profile: profile, index: index, remote: remote, name: name, isFirst: isFirst))
    }

    private mutating func add(
        _ task: ConnectionTaskDescriptor,
        of profile: any Profile
    ) throws(LinkFault) {
        let isListening = task.action == .listen
        let found = table.find(task.characteristic, in: task.service, for: profile) {
            isListening ? $0.isNotifying : $0.isWritable
        }
        guard let remote = found else {
            if task.isRequired { throw Self.missing(task.characteristic, for: profile) }
            return
        }
        let rule: ResponseRule? = if case .write(_, _, let answer) = task.action { answer } else { nil }
        tasks.append(Task(profile: profile, task: task, remote: remote, exchange: exchange(rule, for: profile)))
    }

    /// Returns the download if the device has its stream and the characteristic to write.
    private func download(_ wanted: DownloadDescriptor, of profile: any Profile) -> Download? {
        guard let control = table.find(wanted.characteristic, in: wanted.service, for: profile, \.isWritable),
            let stream = streams.first(where: { $0.profile.name == profile.name && $0.isDownloaded(by: wanted) })
        else { return nil }
        let answering: RemoteCharacteristic? =
            switch wanted.procedure {
            case .accessControlPoint: control
            case .request(_, nil), .blocks: nil
            case .request:
                wanted.answers.flatMap { table.find($0, in: nil, for: profile, \.isNotifying) } ?? stream.remote
            }
        let clock = wanted.clock.flatMap { table.first($0.characteristic) }
        return Download(profile: profile, descriptor: wanted, control: control, answering: answering, clock: clock)
    }

    private func exchange(
        _ rule: ResponseRule?,
        for profile: any Profile
    ) -> ResponseExpectation? {
        guard let rule,
            let remote = table.find(rule.characteristic, in: rule.service, for: profile, \.isNotifying)
        else { return nil }
        return ResponseExpectation(awaiter: answers, rule: rule, remote: remote)
    }

    private static func missing(_ uuid: BluetoothUUID, for profile: any Profile) -> LinkFault {
        let detail = "profile \(profile.name) requires characteristic \(uuid), which the device does not have"
        return LinkFault(.profileMismatch, detail, isPermanent: true)
    }
}

extension ProfileAssignment {
    /// The characteristics that carry responses, or are subscribed only because a task demands it.
    var answering: [RemoteCharacteristic] {
        var handles: Set<String> = []
        let listening = tasks.filter { $0.task.action == .listen }.map(\.remote)
        let exchanges = controls.compactMap(\.exchange) + tasks.compactMap(\.exchange)
        return (listening + exchanges.map(\.remote) + downloads.compactMap(\.answering)).filter {
            handles.insert($0.handle).inserted
        }
    }

    /// The requests of streams whose characteristic the device has; further streams of a kind are not polled.
    var polls: [Poll] {
        streams.enumerated().compactMap { index, stream in
            guard stream.isFirst, let rule = stream.descriptor.poll,
                let control = table.control(of: rule, for: stream.profile)
            else { return nil }
            return Poll(stream: index, name: stream.name, rule: rule, control: control)
        }
    }

    /// The streams whose device lacks the characteristic for their requests.
    var unpolled: [Stream] {
        let polled = Set(polls.map(\.name))
        return streams.filter { $0.isFirst && $0.descriptor.poll != nil && !polled.contains($0.name) }
    }

    /// Returns the rule by which a task resumes from the stream's newest value; `nil` for none.
    func resumption(from stream: Stream) -> ResumeRule? {
        guard stream.isFirst else { return nil }
        let tasks = tasks.filter { $0.profile.name == stream.profile.name }
        return tasks.compactMap(\.task.resume).first { $0.stream == stream.descriptor.stream }
    }

    /// Returns true if a required task subscribes to `remote`.
    func requires(_ remote: RemoteCharacteristic) -> Bool {
        tasks.contains { $0.task.isRequired && (($0.exchange?.remote ?? $0.remote).handle == remote.handle) }
    }
}

extension ProfileAssignment {
    /// Returns the description of a device with these streams and controls.
    func description(of device: SupervisedDevice) -> DeviceDescription {
        DeviceDescription(
            device: device.name,
            address: device.address.description,
            streams: streams.map { .init(name: $0.name, metrics: $0.descriptor.metrics) },
            controls: controls.map(\.descriptor),
            profiles: profiles.map(\.name)
        )
    }
}
