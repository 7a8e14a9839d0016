import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// Decides which devices may pair, tracks the state of bonds and rejects links whose bond is lost.
final class BondKeeper: PairingDelegate {
    private let configuredDevices: ConfiguredDevices
    private let watches = Locked<[PeripheralID: BondWatch]>([:])
    /// The bond of each link, as its link session needs it.
    let sessionBonds = LatestValue<[PeripheralID: SessionBond]>([:])
    /// The links whose bond is being removed by the daemon.
    private let removing = Locked<Set<PeripheralID>>([])
    /// The links whose bond was just found to be lost.
    private let newlyLost = Locked<Set<PeripheralID>>([])
    private let recorder: EventRecorder
    private let log: Log
    private let clock = SuspendingClock()
    private let start: SuspendingClock.Instant

    /// The bond of a link during a link session.
    struct SessionBond: Equatable, Sendable {
        /// The fault that makes the link useless; set until the link has been reported as failed.
        var fault: LinkFault?
        /// True while the link session waits for responses.
        var isAwaitingResponses = false
        /// True if the session paired before its first request.
        var pairedFirst = false
        /// True if the device is known to have paired.
        var hasPaired = false

        /// True if a request may never be answered: BlueZ 5.66 sometimes leaves out the response to the request that
        /// started pairing.
        var mayBeStuck: Bool { isAwaitingResponses && hasPaired && !pairedFirst }
    }

    init(configuredDevices: ConfiguredDevices, recorder: EventRecorder, log: Log) {
        self.configuredDevices = configuredDevices
        self.recorder = recorder
        self.log = log
        start = clock.now
    }

    private var now: Duration { start.duration(to: clock.now) }

    // MARK: - Permission to pair

    func answer(_ request: PairingRequest, from peripheral: PeripheralID) -> PairingResponse {
        guard let device = configuredDevices[peripheral.address] else {
            return .rejected("it is not a device of this gateway")
        }
        let answer = device.pairing.answer(to: request)
        if case .rejected(let reason) = answer, request != .service {
            reject(peripheral, "it wants to pair: \(reason)")
        }
        return answer
    }

    /// Returns the pairing method before the first request; `nil` for no pairing.
    ///
    /// - Throws: ``LinkFault``, also if a bond with another adapter may be lost: a new bond must not replace it
    ///   unnoticed.
    func method(for link: PeripheralID) throws(LinkFault) -> PairingMethod? {
        guard let device = configuredDevices[link.address], device.pairing.method != .never, !isPaired(link) else {
            return nil
        }
        if !device.pairing.repairsBond, let other = doubtfulBond(of: link.address) {
            let remedy = "`gattherd bond forget \(device.name)` lets it pair again"
            throw LinkFault(.authentication, "its bond with the adapter \(other) may be lost; \(remedy)")
        }
        switch device.pairing.method {
        case .never: return nil
        case .onDemand: return watch(link).needsPairing ? .justWorks : nil
        case .justWorks: return .justWorks
        case .compare: return .compare
        case .passkey(let file): return .passkey(try passkey(in: file))
        }
    }

    /// Returns the adapter whose bond with the peripheral failed on its last use.
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

    // MARK: - Events of bonds

    func isPaired(_ link: PeripheralID) -> Bool {
        watch(link).isPaired
    }

    /// Updates the bond states for an event of the central.
    func handle(_ event: CentralEvent) {
        switch event {
        case .peripheralChanged(let status):
            change(status.id) {
                $0.observe(
                    isPaired: status.isPaired,
                    isConnected: status.isConnected,
                    isResolved: status.isServicesResolved,
                    at: now
                )
            }
        case .disconnected(let id): change(id) { $0.ended(at: now) }
        case .linkEnded(let id, .authentication): encryptionFailed(id)
        default: break
        }
    }

    private func change(_ link: PeripheralID, _ event: (inout BondWatch) -> BondWatch.Change?) {
        guard let device = configuredDevices[link.address] else { return }
        switch update(link, event) {
        case .made:
            recordEvent(device, "made", "the device has paired, and its keys are stored")
            sessionBonds.update { $0[link, default: SessionBond()].hasPaired = true }
        case .lost:
            recordEvent(device, "lost", "the device does not know its bond any more")
            _ = newlyLost.withLock { $0.insert(link) }
            guard !device.pairing.repairsBond else { return }
            let remedy = "`gattherd bond forget \(device.name)` lets it pair again"
            setFault(link, LinkFault(.authentication, "it has lost its bond; \(remedy)", isPermanent: true))
        case nil: break
        }
    }

    /// Removes the state of an address that no device uses any more.
    func remove(_ address: BluetoothAddress) {
        watches.withLock { $0 = $0.filter { $0.key.address != address } }
        removing.withLock { $0 = $0.filter { $0.address != address } }
        newlyLost.withLock { $0 = $0.filter { $0.address != address } }
        sessionBonds.update { $0 = $0.filter { $0.key.address != address } }
    }

    /// Resets the state of a link when a connection attempt starts.
    func attemptBegan(_ link: PeripheralID) {
        update(link) { $0.attemptBegan() }
    }

    /// Records that an attempt has made a link, which may have ended since.
    func attemptSucceeded(_ link: PeripheralID) {
        change(link) { $0.attemptSucceeded() }
    }

    /// Records that BlueZ could not encrypt the link.
    func encryptionFailed(_ link: PeripheralID) {
        change(link) { $0.encryptionFailed() }
    }

    /// Returns true if the bond must be removed before another attempt.
    func mustRepair(_ link: PeripheralID) -> Bool {
        watch(link).hasLostBond && configuredDevices[link.address]?.pairing.repairsBond == true
    }

    /// Records that the daemon is about to remove the bond.
    func willForget(_ link: PeripheralID) {
        guard configuredDevices[link.address] != nil else { return }
        clearFault(of: link)
        update(link) { $0.bondRemoved() }
        _ = removing.withLock { $0.insert(link) }
    }

    func didForget(_ link: PeripheralID, because reason: String) {
        configuredDevices[link.address].map { recordEvent($0, "forgotten", reason) }
    }

    /// Returns true once for each bond that the daemon removed.
    func hasLeft(_ link: PeripheralID) -> Bool {
        removing.withLock { $0.remove(link) } != nil
    }

    /// Returns true once for each bond that was found to be lost.
    func hasJustLost(_ link: PeripheralID) -> Bool {
        newlyLost.withLock { $0.remove(link) } != nil
    }

    // MARK: - Results of requests

    /// Creates the fault of a failed request and updates the bond state.
    func fault(_ error: BluetoothError, of link: PeripheralID, while action: String) -> LinkFault {
        switch error.kind {
        case .authentication where !isPaired(link) && configuredDevices[link.address]?.pairing.method != .never:
            update(link) { $0.requestNeedsPairing() }
            return LinkFault(.authentication, "\(action): \(error.detail); pairing first next time")
        case .notConnected, .att(0x0E):
            // BlueZ reports this error for requests in progress when the link ends.
            update(link) { $0.requestFailed(at: now) }
        default: break
        }
        return LinkFault(error, while: action)
    }

    /// Returns the fault of a failed pairing that the daemon started.
    func pairingFailed(_ error: BluetoothError, with link: PeripheralID) -> LinkFault {
        guard error.kind == .authentication else { return LinkFault(error, while: "pairing") }
        return reject(link, "pairing: \(error.detail); is it ready to pair, and is its passkey right?")
    }

    /// Records that the session starts its requests.
    func requestsBegan(on link: PeripheralID, pairedFirst: Bool) {
        sessionBonds.update {
            $0[link] = SessionBond(fault: $0[link]?.fault, isAwaitingResponses: true, pairedFirst: pairedFirst)
        }
    }

    /// Records that every request has been answered, with success or an error.
    func requestsEnded(on link: PeripheralID) {
        sessionBonds.update { $0[link]?.isAwaitingResponses = false }
        update(link) { $0.requestsAnswered() }
    }

    // MARK: - Rejection

    /// The fault that makes the link useless, if any.
    func fault(of link: PeripheralID) -> LinkFault? { sessionBonds.state[link]?.fault }

    /// Clears the fault once the link has been reported as failed: the next attempt is a real one.
    func clearFault(of link: PeripheralID) {
        sessionBonds.update { $0[link] = nil }
        _ = hasJustLost(link)
        update(link) { $0.rearm() }
    }

    @discardableResult
    private func reject(_ link: PeripheralID, _ reason: String) -> LinkFault {
        let fault = LinkFault(.authentication, reason, isPermanent: true)
        configuredDevices[link.address].map { recordEvent($0, "refused", reason) }
        setFault(link, fault)
        return fault
    }

    private func setFault(_ link: PeripheralID, _ fault: LinkFault) {
        sessionBonds.update { $0[link, default: SessionBond()].fault = fault }
    }

    private func watch(_ link: PeripheralID) -> BondWatch {
        watches.withLock { $0[link] ?? BondWatch() }
    }

    @discardableResult
    private func update<Result: Sendable>(_ link: PeripheralID, _ body: (inout BondWatch) -> Result) -> Result {
        watches.withLock { body(&$0[link, default: BondWatch()]) }
    }

    private func recordEvent(_ device: SupervisedDevice, _ state: String, _ detail: String) {
        recorder.record(device: device.name, kind: "bond", ["state": .text(state), "detail": .text(detail)])
        log(.notice, "bond changed", [.init("device", device.name), .init("state", state), .init("detail", detail)])
    }
}
