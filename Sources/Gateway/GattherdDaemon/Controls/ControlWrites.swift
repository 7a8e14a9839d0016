import GattherdMachines
import GattherdModel

/// The state of all controls, owned by ``ControlService/run()``.
struct ControlWrites {
    enum Action {
        case answer(CheckedContinuation<ControlService.Answer, Never>, ControlService.Answer)
        case write(ControlKey, ProfileAssignment.Control, ControlValue, ControlRequest, ControlThrottle.Ticket)
        /// Sends a tick after this time.
        case wake(ControlKey, after: Duration)
    }

    private struct Waiting {
        let request: ControlRequest
        let caller: CheckedContinuation<ControlService.Answer, Never>
    }

    private struct Channel {
        var plan: ProfileAssignment.Control
        var throttle: ControlThrottle
        var isReady = false
        /// The time of the next requested tick.
        var wakesAt: Duration?
        /// True if the device no longer has the control, which is removed after its last request.
        var isLeaving = false

        /// Returns the time to the next tick; `nil` if an earlier tick is pending.
        ///
        /// A burst of requests needs one tick.
        mutating func nextWake(at now: Duration) -> Duration? {
            guard let deadline = throttle.deadline, wakesAt.map({ deadline < $0 }) ?? true else { return nil }
            wakesAt = max(deadline, now)
            return max(deadline - now, .zero)
        }
    }

    private let echo: (ControlKey, String) -> SampleValue?
    private var channels: [ControlKey: Channel] = [:]
    /// The devices that have been ready: all their controls are known.
    private var known: Set<String> = []
    /// The requests without an answer.
    private var waiting: [ControlThrottle.Ticket: Waiting] = [:]
    private var nextTicket = 1

    /// - Parameter echo: Returns the newest value of a stream since the last call.
    init(echo: @escaping (ControlKey, String) -> SampleValue?) {
        self.echo = echo
    }

    /// Applies a message at the monotonic time `now` and returns the actions in order.
    mutating func handle(_ message: ControlService.Message, at now: Duration) -> [Action] {
        switch message {
        case .set(let request, let caller): set(request, caller, at: now)
        case .open(let device, let controls): open(device, controls, at: now)
        case .close(let device): close(device, at: now)
        case .remove(let device, let isMoving): remove(device, isMoving: isMoving, at: now)
        case .event(let key, let event): apply(event, to: key, at: now)
        }
    }

    /// Fails all waiting requests.
    mutating func end() -> [Action] {
        defer { waiting = [:] }
        return waiting.values.map { .answer($0.caller, .failure(.refused("the daemon is stopping"))) }
    }

    private mutating func set(
        _ request: ControlRequest,
        _ caller: CheckedContinuation<ControlService.Answer, Never>,
        at now: Duration
    ) -> [Action] {
        let key = ControlKey(device: request.device, control: request.control)
        guard let channel = channels[key], !channel.isLeaving else {
            let isKnown = known.contains(request.device)
            let error: ControlError = isKnown ? .noSuchControl(request.control) : .notReady(device: request.device)
            return [.answer(caller, .failure(error))]
        }
        do throws(ControlError) {
            let value = try channel.plan.descriptor.kind.accept(request.value)
            let ticket = nextTicket
            nextTicket += 1
            waiting[ticket] = Waiting(request: request, caller: caller)
            return apply(.set(value, ticket), to: key, at: now)
        } catch {
            return [.answer(caller, .failure(error))]
        }
    }

    private mutating func open(_ device: String, _ controls: [ProfileAssignment.Control], at now: Duration) -> [Action]
    {
        known.insert(device)
        let names = Set(controls.map(\.descriptor.name))
        var actions = leave(device, .notReady, at: now) { !names.contains($0) }
        for control in controls {
            let descriptor = control.descriptor
            let key = ControlKey(device: device, control: descriptor.name)
            let interval = descriptor.throttle ?? .zero
            var channel = channels[key] ?? Channel(plan: control, throttle: ControlThrottle(interval: interval))
            (channel.plan, channel.isLeaving) = (control, false)
            channel.throttle.configure(interval: interval, isReported: descriptor.echo != nil)
            channels[key] = channel
            actions += apply(.ready, to: key, at: now)
        }
        return actions
    }

    private mutating func close(_ device: String, at now: Duration) -> [Action] {
        channels.keys.filter { $0.device == device }.flatMap { key in
            apply(.notReady, to: key, at: now)
        }
    }

    private mutating func remove(_ device: String, isMoving: Bool, at now: Duration) -> [Action] {
        known.remove(device)
        let event = isMoving ? ControlThrottle.Event.notReady : .removed(.notReady(device: device))
        return leave(device, event, at: now) { _ in true }
    }

    /// Removes controls of a device after their last requests, which may outlast `event`.
    private mutating func leave(
        _ device: String,
        _ event: ControlThrottle.Event,
        at now: Duration,
        where isGone: (String) -> Bool
    ) -> [Action] {
        channels.keys.filter { $0.device == device && isGone($0.control) }.flatMap { key in
            channels[key]?.isLeaving = true
            return apply(event, to: key, at: now)
        }
    }

    private mutating func apply(_ event: ControlThrottle.Event, to key: ControlKey, at now: Duration) -> [Action] {
        guard var channel = channels[key] else { return [] }
        var effects: [ControlThrottle.Effect] = []
        if event == .tick { channel.wakesAt = nil }
        switch event {
        case .ready: channel.isReady = true
        case .notReady, .removed: channel.isReady = false
        case .set, .written, .failed, .observed, .tick: break
        }
        if let stream = channel.plan.descriptor.echo, let seen = echo(key, stream).flatMap(ControlValue.init) {
            effects += channel.throttle.handle(.observed(seen), at: now)
            passOn(seen, of: stream, from: key, at: now)
        }
        effects += channel.throttle.handle(event, at: now)
        let wake = channel.nextWake(at: now)
        channels[key] = channel.isLeaving && channel.throttle.isIdle ? nil : channel
        let isUnreached = !channel.isReady && event == .tick
        var actions = effects.compactMap { action(for: $0, key, channel.plan, isUnreached: isUnreached) }
        if let wake { actions.append(.wake(key, after: wake)) }
        return actions
    }

    /// Passes a reported value to the device's other controls with the same echo, because it is read only once.
    private mutating func passOn(_ value: ControlValue, of stream: String, from key: ControlKey, at now: Duration) {
        for other in channels.keys where other.device == key.device && other != key {
            guard channels[other]?.plan.descriptor.echo == stream else { continue }
            _ = channels[other]?.throttle.handle(.observed(value), at: now)
        }
    }

    /// Returns the next action.
    ///
    /// With `isUnreached`, expired requests waited for the link and not for a response.
    private mutating func action(
        for effect: ControlThrottle.Effect,
        _ key: ControlKey,
        _ plan: ProfileAssignment.Control,
        isUnreached: Bool
    ) -> Action? {
        switch effect {
        case .write(let value, let ticket):
            return waiting[ticket].map { .write(key, plan, value, $0.request, ticket) }
        case .answer(let ticket, let result):
            let isLate = isUnreached && result == .failure(.timedOut)
            let answer = isLate ? .failure(.notReady(device: key.device)) : result
            return waiting.removeValue(forKey: ticket).map { .answer($0.caller, answer) }
        }
    }
}

extension ControlValue {
    /// Creates the control value that a sample shows; `nil` if it is unknown.
    init?(_ sample: SampleValue) {
        switch sample {
        case .integer(let number): self = .integer(number)
        case .real(let number): self = .real(number)
        case .boolean(let flag): self = .boolean(flag)
        case .text(let text): self = .text(text)
        case .null: return nil
        }
    }
}
