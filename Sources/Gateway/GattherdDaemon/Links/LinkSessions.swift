import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// The links of all devices, and the link sessions on them.
struct LinkSessions {
    private struct Running {
        let ticket: Int
        /// Has an element when another session takes over on the same link, and ends with the session.
        let replacements: AsyncStream<Void>.Continuation
        /// The number of advertisements during the session.
        let sightings = LatestValue<UInt64>(0)
    }

    private let context: LinkSessionContext
    private let log: Log
    /// The link of each device, established or in progress.
    private var links: [String: PeripheralID] = [:]
    private var running: [String: Running] = [:]
    /// The subscriptions of each device's newest link.
    private var subscriptions: [String: LinkSubscriptions] = [:]
    /// The end of each device's newest session: true after it has released everything.
    private var releases: [String: LatestValue<Bool>] = [:]
    /// The profile assignment of each device's newest session.
    private var assignments: [String: ProfileAssignment] = [:]

    init(_ context: LinkSessionContext, log: Log) {
        self.context = context
        self.log = log
    }

    /// The links of all devices, in no order.
    var allLinks: [(device: String, link: PeripheralID)] { links.map { ($0.key, $0.value) } }

    /// The link of a device, established or in progress.
    func link(of device: String) -> PeripheralID? { links[device] }

    /// The profile assignment of a device's newest session.
    func assignment(of device: String) -> ProfileAssignment? { assignments[device] }

    mutating func setLink(_ link: PeripheralID, of device: String) {
        links[device] = link
    }

    /// Opens the first session on a link.
    mutating func open(
        _ device: SupervisedDevice,
        ticket: Int,
        in group: inout DiscardingTaskGroup,
        report: @escaping @Sendable (LinkSessionProgress) -> Void
    ) {
        subscriptions[device.name] = LinkSubscriptions()
        start(device, ticket: ticket, in: &group, report: report)
    }

    /// Replaces the session on a link; the new one takes over the subscriptions.
    mutating func replace(
        _ device: SupervisedDevice,
        ticket: Int,
        in group: inout DiscardingTaskGroup,
        report: @escaping @Sendable (LinkSessionProgress) -> Void
    ) {
        running[device.name]?.replacements.yield()
        close(device.name)
        start(device, ticket: ticket, in: &group, report: report)
    }

    private mutating func start(
        _ device: SupervisedDevice,
        ticket: Int,
        in group: inout DiscardingTaskGroup,
        report: @escaping @Sendable (LinkSessionProgress) -> Void
    ) {
        guard let link = links[device.name] else { return }
        let (replacements, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
        let session = Running(ticket: ticket, replacements: continuation)
        running.updateValue(session, forKey: device.name)?.replacements.finish()
        let previous = releases[device.name]
        let released = LatestValue(false)
        releases[device.name] = released
        let linkSession = LinkSession(
            on: ServedLink(device, link, context, log: log.with(LogField("device", device.name))),
            subscriptions: subscriptions[device.name] ?? LinkSubscriptions(),
            sightings: session.sightings,
            report: report
        )
        group.addTask {
            // Unsubscribing must not overtake the subscriptions of the new session.
            if let previous { for await isReleased in previous.watch() where isReleased { break } }
            await linkSession.run(until: replacements)
            released.set(true)
        }
    }

    /// Records the profile assignment of a session; returns false if the session has been closed or replaced.
    mutating func prepared(_ assignment: ProfileAssignment, of device: String, ticket: Int) -> Bool {
        guard running[device]?.ticket == ticket else { return false }
        assignments[device] = assignment
        return true
    }

    /// Reports an advertisement of a device whose link counts as up.
    func recordSighting(of device: String) {
        running[device]?.sightings.update { $0 &+= 1 }
    }

    mutating func close(_ device: String) {
        running.removeValue(forKey: device)?.replacements.finish()
    }

    /// Closes all sessions and returns their devices.
    mutating func closeAll() -> [String] {
        let devices = running.keys.sorted()
        devices.forEach { close($0) }
        return devices
    }

    /// Removes a device without a session, and the finished releases of all devices.
    mutating func remove(_ device: String) {
        (links[device], subscriptions[device], assignments[device]) = (nil, nil, nil)
        releases = releases.filter { !$0.value.state }
    }
}
