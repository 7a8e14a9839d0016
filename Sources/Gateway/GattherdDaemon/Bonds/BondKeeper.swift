import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// Says who may pair, watches over bonds, and remembers what must not be tried again for now.
final class BondKeeper: PairingDelegate {
    private let roster: ConfiguredDevices
    private let watches = Locked<[PeripheralID: BondWatch]>([:])
    /// What a session must know of its link.
    let standings = LatestValue<[PeripheralID: Standing]>([:])
    /// Those whose bond is being removed on our side.
    private let leaving = Locked<Set<PeripheralID>>([])
    /// Those of whose bond it has just turned out that it is lost.
    private let losing = Locked<Set<PeripheralID>>([])
    private let recorder: EventRecorder
    private let log: Log
    private let clock = SuspendingClock()
    private let start: SuspendingClock.Instant

    struct Standing: Equatable, Sendable {
        /// Why the link is of no use; stays until the link is told to have failed.
        var verdict: LinkFault?
        /// The session waits for answers.
        var isAsking = false
        /// The session has paired before it began to ask.
        var pairedFirst = false
        /// It is known that the device has paired.
        var hasPaired = false

        /// BlueZ 5.66 sometimes does not answer the request that made the device pair.
        var mayBeStuck: Bool { isAsking && hasPaired && !pairedFirst }
    }

    init(roster: ConfiguredDevices, recorder: EventRecorder, log: Log) {
        self.roster = roster
        self.recorder = recorder
        self.log = log
        start = clock.now
    }

    private var now: Duration { start.duration(to: clock.now) }

    // MARK: - Who may pair

    func answer(_ question: PairingRequest, from peripheral: PeripheralID) -> PairingResponse {
        guard let device = roster[peripheral.address] else { return .rejected("it is no device of this gateway") }
        let answer = device.pairing.answer(to: question)
        if case .rejected(let reason) = answer, question != .service {
            convict(peripheral, "it wants to pair: \(reason)")
        }
        return answer
    }

    /// How to pair before anything is asked; `nil` when that is not to be.
    ///
    /// - Throws: Also when a bond with another adapter may be lost: a new one must not take its place by the back door.
    func method(for link: PeripheralID) throws(LinkFault) -> PairingMethod? {
        guard let device = roster[link.address], device.pairing.way != .never, !isPaired(link) else { return nil }
        if !device.pairing.repairsBond, let other = doubtfulBond(of: link.address) {
            let remedy = "`gattherd bond forget \(device.name)` lets it pair again"
            throw LinkFault(.authentication, "its bond with the adapter \(other) may be lost; \(remedy)")
        }
        switch device.pairing.way {
        case .never: return nil
        case .onDemand: return watch(link).needsPairing ? .justWorks : nil
        case .justWorks: return .justWorks
        case .compare: return .compare
        case .passkey(let file): return .passkey(try passkey(in: file))
        }
    }

    /// The adapter with which the peripheral has a bond that did not hold the last time.
    private func doubtfulBond(of address: BluetoothAddress) -> BluetoothAddress? {
        watches.withLock { $0.first { $0.key.address == address && $0.value.isInDoubt }?.key.adapter }
    }

    private func passkey(in file: String) throws(LinkFault) -> Passkey {
        do throws(PinFileError) {
            return try PinFile.read(file)
        } catch {
            throw LinkFault(.authentication, error.description, isPermanent: true)
        }
    }

    // MARK: - What happens to bonds

    func isPaired(_ link: PeripheralID) -> Bool {
        watch(link).isPaired
    }

    /// Takes note of everything that happens.
    func note(_ event: CentralEvent) {
        switch event {
        case .peripheralChanged(let status):
            change(status.id) {
                $0.observe(
                    isPaired: status.isPaired,
                    isConnected: status.isConnected,
                    isResolved: status.isServicesResolved,
                    now: now
                )
            }
        case .disconnected(let id): change(id) { $0.ended(now: now) }
        case .linkEnded(let id, .authentication): encryptionFailed(id)
        default: break
        }
    }

    private func change(_ link: PeripheralID, _ event: (inout BondWatch) -> BondWatch.Change?) {
        guard let device = roster[link.address] else { return }
        switch update(link, event) {
        case .made:
            tell(device, "made", "the device has paired, and its keys are stored")
            standings.update { $0[link, default: Standing()].hasPaired = true }
        case .lost:
            tell(device, "lost", "the device does not know its bond any more")
            _ = losing.withLock { $0.insert(link) }
            guard !device.pairing.repairsBond else { return }
            let remedy = "`gattherd bond forget \(device.name)` lets it pair again"
            judge(link, LinkFault(.authentication, "it has lost its bond; \(remedy)", isPermanent: true))
        case nil: break
        }
    }

    /// An address is no device's any more.
    func forget(_ address: BluetoothAddress) {
        watches.withLock { $0 = $0.filter { $0.key.address != address } }
        leaving.withLock { $0 = $0.filter { $0.address != address } }
        losing.withLock { $0 = $0.filter { $0.address != address } }
        standings.update { $0 = $0.filter { $0.key.address != address } }
    }

    /// An attempt to connect begins.
    func attemptBegan(_ link: PeripheralID) {
        update(link) { $0.attemptBegan() }
    }

    /// An attempt to connect has brought a link, which may have dropped since.
    func attemptSucceeded(_ link: PeripheralID) {
        change(link) { $0.attemptSucceeded() }
    }

    /// BlueZ says that the link could not be encrypted.
    func encryptionFailed(_ link: PeripheralID) {
        change(link) { $0.encryptionFailed() }
    }

    /// True when the bond must be removed before another attempt.
    func mustRepair(_ link: PeripheralID) -> Bool {
        watch(link).hasLostBond && roster[link.address]?.pairing.repairsBond == true
    }

    /// Our side of the bond is about to be removed.
    func willForget(_ link: PeripheralID) {
        guard roster[link.address] != nil else { return }
        settle(link)
        update(link) { $0.forget() }
        _ = leaving.withLock { $0.insert(link) }
    }

    func didForget(_ link: PeripheralID, because reason: String) {
        roster[link.address].map { tell($0, "forgotten", reason) }
    }

    /// True once for each bond that we removed.
    func hasLeft(_ link: PeripheralID) -> Bool {
        leaving.withLock { $0.remove(link) } != nil
    }

    /// True once for each bond that turned out to be lost.
    func hasJustLost(_ link: PeripheralID) -> Bool {
        losing.withLock { $0.remove(link) } != nil
    }

    // MARK: - What happens to requests

    /// Makes the fault of a request that failed, and draws conclusions from it.
    func fault(_ error: BluetoothError, of link: PeripheralID, while action: String) -> LinkFault {
        switch error.kind {
        case .authentication where !isPaired(link) && roster[link.address]?.pairing.way != .never:
            update(link) { $0.requestNeedsPairing() }
            return LinkFault(.authentication, "\(action): \(error.detail); pairing first next time")
        case .notConnected, .att(0x0E):
            // BlueZ's answer to what was under way when the link ended.
            update(link) { $0.requestFailed(now: now) }
        default: break
        }
        return LinkFault(error, while: action)
    }

    /// A pairing that we asked for has failed.
    func pairingFailed(_ error: BluetoothError, with link: PeripheralID) -> LinkFault {
        guard error.kind == .authentication else { return LinkFault(error, while: "pairing") }
        return convict(link, "pairing: \(error.detail); is it ready to pair, and is its passkey right?")
    }

    /// A session begins to ask.
    func asking(_ link: PeripheralID, pairedFirst: Bool) {
        standings.update { $0[link] = Standing(verdict: $0[link]?.verdict, isAsking: true, pairedFirst: pairedFirst) }
    }

    /// Everything that was asked for was answered, well or badly.
    func served(_ link: PeripheralID) {
        standings.update { $0[link]?.isAsking = false }
        update(link) { $0.served() }
    }

    // MARK: - Verdicts

    /// The link is told to have failed: the next attempt is a real one.
    func settle(_ link: PeripheralID) {
        standings.update { $0[link] = nil }
        _ = hasJustLost(link)
        update(link) { $0.doubt() }
    }

    @discardableResult
    private func convict(_ link: PeripheralID, _ reason: String) -> LinkFault {
        let fault = LinkFault(.authentication, reason, isPermanent: true)
        roster[link.address].map { tell($0, "refused", reason) }
        judge(link, fault)
        return fault
    }

    private func judge(_ link: PeripheralID, _ fault: LinkFault) {
        standings.update { $0[link, default: Standing()].verdict = fault }
    }

    private func watch(_ link: PeripheralID) -> BondWatch {
        watches.withLock { $0[link] ?? BondWatch() }
    }

    @discardableResult
    private func update<Answer: Sendable>(_ link: PeripheralID, _ body: (inout BondWatch) -> Answer) -> Answer {
        watches.withLock { body(&$0[link, default: BondWatch()]) }
    }

    private func tell(_ device: SupervisedDevice, _ state: String, _ detail: String) {
        recorder.record(device: device.name, kind: "bond", ["state": .text(state), "detail": .text(detail)])
        log(.notice, "bond", [.init("device", device.name), .init("state", state), .init("detail", detail)])
    }
}

extension DevicePairing {
    /// The answer to a device that pairs because of what is asked of it.
    func answer(to question: PairingRequest) -> PairingResponse {
        switch way {
        case .never: .rejected("its 'pairing: never' forbids it")
        case .onDemand, .justWorks: PairingMethod.justWorks.answer(to: question)
        case .compare: PairingMethod.compare.answer(to: question)
        case .passkey: .rejected("it is to use its passkey, right after connecting")
        }
    }
}
