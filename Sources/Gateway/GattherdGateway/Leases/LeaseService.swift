import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdOutputs
import GattherdPostgres
import GattherdSync

/// Runs the lease machine: passes it advertisements and links, exchanges bids with the centre, and admits devices.
final class LeaseService: Sendable {
    private enum Message: Sendable {
        case tick
        /// A link has changed.
        case linkChanged
        case answered(ticket: Int, Result<[LeaseRow], OutputFault>)
        case stop
    }

    /// The time between two reads of advertisements and links.
    private static let tick = Duration.milliseconds(250)
    /// The time between two such reads while a device is handed over.
    private static let quickTick = Duration.milliseconds(50)
    /// The number of ticks after which all devices are admitted or withdrawn again: a reload may have replaced links.
    private static let ticksPerRepetition = 20
    /// The limit of an exchange; a centre that needs longer counts as unreachable.
    private static let exchangeLimit = Duration.seconds(5)
    /// The limit of the exchange that releases all leases at the end.
    private static let releaseLimit = Duration.seconds(2)

    private let running: RunningConfiguration
    private let supervisor: Supervisor
    private let board: LeaseBoard
    private let centre: PostgresLeases
    private let file: LeaseFile
    private let recorder: EventRecorder
    private let announce: @Sendable (DeviceLease) -> Void
    private let log: Log
    private let inbox: AsyncStream<Message>
    private let post: AsyncStream<Message>.Continuation
    private let hasEnded = LatestValue(false)
    private let isBusy = Locked(false)

    /// - Parameters:
    ///   - running: The configuration with the devices.
    ///   - supervisor: Connects the devices that this gateway owns.
    ///   - board: Receives the leases, for all others.
    ///   - centre: The leases of the fleet.
    ///   - file: Keeps the devices that this gateway owned last.
    ///   - recorder: Records changes of owners.
    ///   - announce: Publishes changes of leases.
    ///   - log: The log for people.
    init(
        _ running: RunningConfiguration,
        _ supervisor: Supervisor,
        _ board: LeaseBoard,
        _ centre: PostgresLeases,
        _ file: LeaseFile,
        _ recorder: EventRecorder,
        announce: @escaping @Sendable (DeviceLease) -> Void,
        log: Log
    ) {
        (self.running, self.supervisor, self.board) = (running, supervisor, board)
        (self.centre, self.file, self.recorder, self.log) = (centre, file, recorder, log)
        self.announce = announce
        // Bounded: a tick is handled at once, and one exchange is under way.
        (inbox, post) = AsyncStream.makeStream(of: Message.self, bufferingPolicy: .unbounded)
    }

    /// Runs until ``stop()``, or until cancelled.
    func run() async {
        let start = ContinuousClock.now
        let machine = LeaseMachine(gateway: centre.gateway, recalled: file.addresses, at: .zero)
        var loop = LeaseLoop(machine)
        await withDiscardingTaskGroup { group in
            group.addTask { await self.sendTicks() }
            group.addTask { for await _ in self.supervisor.status.changes.watch() { self.post.yield(.linkChanged) } }
            for await message in inbox {
                let now = ContinuousClock.now - start
                for effect in events(message, &loop).flatMap({ loop.machine.handle($0, at: now) }) {
                    perform(effect, isStopping: loop.isStopping, in: &group)
                }
                publish(&loop, at: now, start)
                isBusy.withLock { $0 = loop.machine.isBusy(at: now) }
                if loop.isStopping, !loop.machine.isExchanging { break }
            }
            group.cancelAll()
        }
        centre.close()
        hasEnded.set(true)
    }

    /// Releases all leases and ends ``run()``; returns after that.
    ///
    /// The links must have ended.
    func stop() async {
        post.yield(.stop)
        for await hasEnded in hasEnded.watch() where hasEnded { return }
    }

    private func sendTicks() async {
        while (try? await Task.sleep(for: isBusy.withLock(\.self) ? Self.quickTick : Self.tick, clock: .loop)) != nil {
            post.yield(.tick)
        }
    }

    // MARK: - Input

    private func events(_ message: Message, _ loop: inout LeaseLoop) -> [LeaseMachine.Event] {
        switch message {
        case .tick:
            loop.ticks += 1
            if loop.ticks % Self.ticksPerRepetition == 0 { repeatAdmissions(loop) }
            return observations(&loop)
        case .linkChanged: return observations(&loop)
        case .answered(let ticket, let answer):
            loop.answered(answer, log)
            guard case .success(let rows) = answer else { return [.failed(ticket: ticket)] }
            board.recordAnswer()
            return [.answered(ticket: ticket, rows)] + (loop.isStopping ? [] : observations(&loop))
        case .stop:
            loop.isStopping = true
            return [.stop(releases: !running.configuration.bluetooth.keepsLinksOnStop)]
        }
    }

    /// The devices, and the advertisements and links since the last read.
    private func observations(_ loop: inout LeaseLoop) -> [LeaseMachine.Event] {
        let devices = running.leasedDevices
        var events: [LeaseMachine.Event] = []
        if devices != loop.devices { events.append(.configured(devices)) }
        loop.devices = devices
        let names = Dictionary(devices.map { ($0.address, $0.name) }) { first, _ in first }
        for sighting in board.drainSightings() {
            guard let name = names[sighting.address] else { continue }
            events.append(.heard(device: name, adapter: sighting.adapter, rssi: sighting.rssi))
        }
        for device in devices where device.isConnectable {
            guard let link = supervisor.status.link(of: device.name) else { continue }
            events.append(.link(device: device.name, LeaseMachine.LinkPhase(link)))
        }
        for device in loop.machine.departingDevices {
            let phase = supervisor.status.link(of: device).map { LeaseMachine.LinkPhase($0) }
            events.append(.link(device: device, phase ?? .withdrawn))
        }
        events.append(.slots(isFull: isFull))
        return events + [.tick]
    }

    private var isFull: Bool {
        let adapters = supervisor.status.adapters.filter(\.isPowered)
        return !adapters.isEmpty && adapters.allSatisfy { supervisor.status.report(of: $0.address)?.isFull ?? false }
    }

    private func repeatAdmissions(_ loop: LeaseLoop) {
        for device in loop.devices where device.isConnectable {
            if loop.machine.isAdmitted(device.name) {
                supervisor.admit(device.name)
            } else if let detail = loop.machine.withdrawal(of: device.name) {
                supervisor.withdraw(device.name, detail)
            }
        }
    }

    // MARK: - Effects

    private func perform(_ effect: LeaseMachine.Effect, isStopping: Bool, in group: inout DiscardingTaskGroup) {
        switch effect {
        case .exchange(let requests, let ticket):
            let limit = isStopping ? Self.releaseLimit : Self.exchangeLimit
            group.addTask { [centre, post] in
                do throws(OutputFault) {
                    let rows = try await centre.exchange(requests, within: limit)
                    post.yield(.answered(ticket: ticket, .success(rows)))
                } catch {
                    post.yield(.answered(ticket: ticket, .failure(error)))
                }
            }
        case .admit(let device): supervisor.admit(device)
        case .withdraw(let device, let detail): supervisor.withdraw(device, detail)
        case .handedOver(_, let cause): board.recordHandover(cause)
        case .changed(let device, let status):
            if status.owner == centre.gateway { board.recordClaim() }
            record(device, status)
        }
    }

    private func record(_ device: String, _ status: LeaseStatus) {
        let state = status.owner.map { "owned by \($0)" } ?? "free"
        recorder.record(
            device: device,
            kind: "lease",
            ["state": .text(state), "epoch": .integer(status.epoch), "detail": .text(status.reason)]
        )
        let fields = [LogField("device", device), LogField("state", state), LogField("epoch", status.epoch)]
        log(.info, "lease owner changed", fields + [LogField("reason", status.reason)])
    }

    private func publish(_ loop: inout LeaseLoop, at now: Duration, _ start: ContinuousClock.Instant) {
        var entries: [String: LeaseBoard.Entry] = [:]
        for device in loop.devices {
            guard let status = loop.machine.status(of: device.name, at: now) else { continue }
            let until = loop.machine.lease(of: device.name, at: now).map { start + $0.until }
            let isElsewhere = status.owner.map { $0 != centre.gateway } ?? false
            entries[device.name] = LeaseBoard.Entry(status, until: until, isOwnedElsewhere: isElsewhere)
            publish(device.name, status, isElsewhere: isElsewhere, &loop)
        }
        loop.announced = loop.announced.filter { entries[$0.key] != nil }
        board.update(entries, problem: loop.problem, at: SystemClock.now)
        if !loop.devices.isEmpty, !loop.isStopping { file.save(loop.machine.lastOwned) }
    }
}

extension LeaseService {
    /// Publishes a device's lease if it has changed.
    private func publish(_ device: String, _ status: LeaseStatus, isElsewhere: Bool, _ loop: inout LeaseLoop) {
        // While it waits for a release, a gateway claims again and again.
        let state = status.role == .claiming ? .standby : status.role
        let lease = DeviceLease(
            device: device,
            state: state.rawValue,
            owner: status.owner,
            epoch: status.epoch,
            isPublisher: !isElsewhere || running.configuration.fleet.publisher == .all,
            isOwnedElsewhere: isElsewhere
        )
        guard loop.announced.updateValue(lease, forKey: device) != lease else { return }
        announce(lease)
    }
}

/// The state of ``LeaseService/run()``.
private struct LeaseLoop {
    var machine: LeaseMachine
    var devices: [LeasedDevice] = []
    /// The leases that were published last.
    var announced: [String: DeviceLease] = [:]
    var ticks = 0
    /// The reason why the centre does not answer.
    private(set) var problem: String?
    var isStopping = false

    init(_ machine: LeaseMachine) {
        self.machine = machine
    }

    /// Logs a centre that stops or starts answering, once.
    mutating func answered(_ answer: Result<[LeaseRow], OutputFault>, _ log: Log) {
        switch answer {
        case .success:
            if problem != nil { log(.notice, "the centre answers again; leases apply") }
            problem = nil
        case .failure(let fault):
            let fields = [LogField("error", fault.detail)]
            if problem == nil { log(.warning, "the centre does not answer about leases", fields) }
            problem = fault.detail
        }
    }
}

extension RunningConfiguration {
    /// The devices with leases: all.
    fileprivate var leasedDevices: [LeasedDevice] {
        let gateways = Dictionary(configuration.devices.map { ($0.name.value, $0.gateways) }) { first, _ in first }
        return devices.map { device in
            LeasedDevice(
                name: device.name,
                address: device.address.description,
                gateways: gateways[device.name]?.map { $0.map(\.value) },
                isConnectable: device.listening == nil
            )
        }
    }
}

extension LeaseMachine.LinkPhase {
    fileprivate init(_ link: LinkStatus) {
        switch link.state {
        case .disconnected where link.reason == .ownedElsewhere: self = .withdrawn
        case .waiting, .disconnected, .backingOff: self = .none
        case .connecting: self = .attempting
        case .discovering, .preparing, .ready: self = .linked
        case .disconnecting: self = .ending
        case .held: self = .held
        case .failed: self = .failed([link.reason?.words, link.detail].compactMap(\.self).joined(separator: ": "))
        }
    }
}
