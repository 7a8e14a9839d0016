import GattherdBluetooth
import GattherdMachines
public import GattherdModel
import GattherdSync

/// Sets controls.
///
/// Writes are serialized per control and throttled as the profile demands; the latest value wins.
public final class ControlService: Sendable {
    typealias Answer = Result<ControlValue, ControlError>

    enum Message: Sendable {
        case set(ControlRequest, CheckedContinuation<Answer, Never>)
        case open(device: String, [ProfileAssignment.Control])
        case close(device: String)
        case remove(device: String, isMoving: Bool = false)
        case event(ControlKey, ControlThrottle.Event)
    }

    private let configuredDevices: ConfiguredDevices
    private let sensors: SensorWatch
    private let central: any CentralBackend
    private let catalogue: StreamCatalogue
    private let recorder: EventRecorder
    /// The leases of all devices; `nil` without leases.
    private let leases: LeaseBoard?
    private let inbox: AsyncStream<Message>
    private let post: AsyncStream<Message>.Continuation

    init(
        configuredDevices: ConfiguredDevices,
        sensors: SensorWatch,
        central: any CentralBackend,
        catalogue: StreamCatalogue,
        recorder: EventRecorder,
        leases: LeaseBoard? = nil
    ) {
        self.leases = leases
        self.configuredDevices = configuredDevices
        self.sensors = sensors
        self.central = central
        self.catalogue = catalogue
        self.recorder = recorder
        // Bounded by the callers: each waits for its own reply.
        (inbox, post) = AsyncStream.makeStream(of: Message.self, bufferingPolicy: .unbounded)
    }

    /// Sets a control and returns the result; a value that is not written in time is dropped.
    public func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError> {
        guard configuredDevices[request.device] != nil else {
            let isSensor = sensors[request.device] != nil
            let name = request.device.cut(toBytes: Slug.longest)
            return .failure(isSensor ? .onlyAdvertises(name) : .noSuchDevice(name))
        }
        // Invalid names are refused here: their length is up to the client, so they must not be stored.
        guard Slug.isValid(request.control) else {
            return .failure(.noSuchControl(request.control.cut(toBytes: Slug.longest)))
        }
        let answer = await fenced(request)
        audit(request, answer)
        return answer
    }

    /// Sets a control if the device's lease allows it, each transaction once.
    private func fenced(_ request: ControlRequest) async -> Answer {
        guard let leases else { return await write(request) }
        if let refusal = leases.refusal(of: request) { return .failure(refusal) }
        guard leases.begin(request) else { return .failure(.repeated) }
        let answer = await write(request)
        if case .failure(let error) = answer, error.wasNotWritten { leases.cancel(request) }
        return answer
    }

    private func write(_ request: ControlRequest) async -> Answer {
        await withCheckedContinuation { continuation in
            if case .terminated = post.yield(.set(request, continuation)) {
                continuation.resume(returning: .failure(.notReady(device: request.device)))
            }
        }
    }

    /// Runs until ``finish()``, then fails all waiting requests.
    func run() async {
        var run = ControlWrites(echo: { self.catalogue.removeEcho(device: $0.device, stream: $1) })
        let clock = SuspendingClock()
        let start = clock.now
        await withDiscardingTaskGroup { group in
            for await message in inbox {
                for action in run.handle(message, at: start.duration(to: clock.now)) { perform(action, in: &group) }
            }
            group.cancelAll()
        }
        for action in run.end() { answer(action) }
    }

    func finish() {
        post.finish()
    }

    func open(device: String, _ controls: [ProfileAssignment.Control]) {
        post.yield(.open(device: device, controls))
    }

    func close(device: String) {
        post.yield(.close(device: device))
    }

    /// Removes a device's controls.
    ///
    /// Its waiting requests fail, unless the same peripheral is moving to another adapter.
    func remove(device: String, isMoving: Bool) {
        post.yield(.remove(device: device, isMoving: isMoving))
    }

    private func perform(_ action: ControlWrites.Action, in group: inout DiscardingTaskGroup) {
        switch action {
        case .answer: answer(action)
        case .wake(let key, let delay):
            group.addTask {
                if (try? await Task.sleep(for: delay, clock: .loop)) != nil { self.post.yield(.event(key, .tick)) }
            }
        case .write(let key, let control, let value, let request, let ticket):
            group.addTask {
                let outcome = await self.write(value, to: control, request, ticket)
                self.post.yield(.event(key, outcome))
            }
        }
    }

    private func answer(_ action: ControlWrites.Action) {
        if case .answer(let continuation, let answer) = action { continuation.resume(returning: answer) }
    }

    private func write(
        _ value: ControlValue,
        to control: ProfileAssignment.Control,
        _ request: ControlRequest,
        _ ticket: ControlThrottle.Ticket
    ) async -> ControlThrottle.Event {
        do {
            let octets = try control.profile.encode(control: control.index, value: value)
            return try await write(octets, to: control, request, ticket)
        } catch let error as BluetoothError {
            // Writing an action again could carry it out twice.
            if value == .trigger, error.mayHaveWritten { return .failed(ticket, .timedOut, retryable: false) }
            return .failed(ticket, ControlError(error, of: request.device), retryable: error.isTransient)
        } catch {
            return .failed(ticket, error as? ControlError ?? .refused("\(error)"), retryable: false)
        }
    }

    /// Writes in the turn of the link's other requests, if it has any.
    private func write(
        _ octets: [UInt8],
        to control: ProfileAssignment.Control,
        _ request: ControlRequest,
        _ ticket: ControlThrottle.Ticket
    ) async throws(BluetoothError) -> ControlThrottle.Event {
        guard let turn = control.turn else { return try await exchange(octets, with: control, request, ticket) }
        return try await turn.perform { () async throws(BluetoothError) in
            try await exchange(octets, with: control, request, ticket)
        }
    }

    private func exchange(
        _ octets: [UInt8],
        with control: ProfileAssignment.Control,
        _ request: ControlRequest,
        _ ticket: ControlThrottle.Ticket
    ) async throws(BluetoothError) -> ControlThrottle.Event {
        // The value may have waited while the lease ended.
        if let refusal = leases?.refusal(of: request) { return .failed(ticket, refusal, retryable: false) }
        let isAcknowledged = control.descriptor.isAcknowledged
        guard let exchange = control.exchange else {
            try await central.write(octets, to: control.remote, withResponse: isAcknowledged)
            return .written(ticket)
        }
        let response = try await exchange.awaiter.response(to: exchange.rule, of: exchange.remote) {
            () async throws(BluetoothError) in
            try await central.write(octets, to: control.remote, withResponse: isAcknowledged)
        }
        switch response {
        case .success: return .written(ticket)
        case .refusal(let reason): return .failed(ticket, .refused("the device says: \(reason)"), retryable: false)
        case nil: return .failed(ticket, .timedOut, retryable: false)
        }
    }

    private func audit(_ request: ControlRequest, _ answer: Answer) {
        let error: ControlError? = if case .failure(let error) = answer { error } else { nil }
        recorder.record(
            device: request.device,
            kind: "control",
            [
                "control": .text(request.control),
                "value": .text(request.value.description),
                "status": .text(error == nil ? "ok" : "error"),
                "error": error.map { .text($0.description) },
            ]
        )
    }
}

extension ControlError {
    /// True if the device cannot have received the value.
    fileprivate var wasNotWritten: Bool {
        switch self {
        case .timedOut, .refused, .repeated: false
        case .noSuchDevice, .onlyAdvertises, .noSuchControl, .invalidValue, .notReady, .superseded, .notOwner,
            .otherEpoch:
            true
        }
    }

    /// Creates the result of a failed write.
    ///
    /// Only an error response of the device counts as a refusal.
    init(_ error: BluetoothError, of device: String) {
        switch error.kind {
        case .timedOut: self = .timedOut
        case .notConnected, .unknownPeripheral, .adapterUnavailable, .serviceUnavailable:
            self = .notReady(device: device)
        default: self = .refused(error.detail)
        }
    }
}

extension BluetoothError {
    /// True if the device may have received the value of a write that failed, because its response is lost.
    ///
    /// BlueZ reports a response that does not come as the ATT error 0x0E, or as a failure without a code. An error that
    /// is not transient is the device's own answer, or a refusal before the write. So is `Not connected`: BlueZ answers
    /// it only to a call that finds no link.
    fileprivate var mayHaveWritten: Bool {
        switch kind {
        case .busy, .unknownPeripheral, .unknownAttribute, .att(0x11): false
        case .notConnected: original?.message != "Not connected"
        default: isTransient
        }
    }
}

/// The key of one control of one device.
struct ControlKey: Hashable, Sendable {
    let device: String
    let control: String
}
