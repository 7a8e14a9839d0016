import GattherdModel

// The transitions that BlueZ, the peripheral and time cause, by event and state.
extension LinkMachine {
    // MARK: - The peripheral

    mutating func seen(isConnected: Bool) -> [Effect] {
        presence.seen()
        guard ending == nil, withdrawal == nil else { return [] }
        switch state {
        case .waiting, .disconnected:
            return isConnected ? useExistingLink() : enqueue()
        case .backingOff:
            return isConnected && !stability.hasFailedSession ? useExistingLink() : []
        case .connecting, .discovering, .preparing, .ready, .disconnecting, .held, .failed:
            return []
        }
    }

    /// Waits until the link is dropped or usable, then connects; neither outcome is a failure.
    mutating func linkFound() -> [Effect] {
        presence.linkFound()
        guard ending == nil, withdrawal == nil, state == .waiting || state == .disconnected else { return [] }
        return switch presence.doubt {
        case .waiting: []
        case .over: enqueue()
        case .none: waitForLink()
        }
    }

    /// Takes over a link that is already up, without a connect turn.
    private mutating func useExistingLink() -> [Effect] {
        leaveQueue() + openSession(reason: nil)
    }

    /// Handles the removal of the peripheral's object.
    ///
    /// A pause under way continues, so that a flapping peripheral is not contacted at once. BlueZ 5.66 removes the
    /// object within milliseconds of a failed attempt. The answer to the attempt follows with more detail.
    mutating func vanished(_ detail: String, using generator: inout some RandomNumberGenerator) -> [Effect] {
        presence.gone()
        let ended = ended()
        switch state {
        case .waiting, .disconnecting, .held, .failed:
            return ended + leaveQueue()
        case .backingOff:
            return isQueued ? leaveQueue() + move(to: .waiting, reason: .vanished, detail) : ended
        case .disconnected where withdrawal != nil:
            return ended
        case .disconnected:
            return leaveQueue() + move(to: .waiting, reason: .vanished, detail)
        case .connecting:
            return []
        case .discovering, .preparing, .ready:
            return failed(LinkFault(.vanished, detail), isDown: true, using: &generator)
        }
    }

    /// Handles the loss of the adapter or of bluetoothd; nothing can be tried until it returns.
    ///
    /// The device is not at fault, and earlier failures may have had the same cause. So all failure counts are reset.
    mutating func gone(_ reason: LinkReason, _ detail: String) -> [Effect] {
        presence.gone()
        forgetFailures()
        let ended = ended()
        switch state {
        case .disconnecting, .held:
            return ended
        case .disconnected where withdrawal != nil:
            return ended + leaveQueue() + closeSession()
        case .waiting, .disconnected, .backingOff, .connecting, .discovering, .preparing, .ready, .failed:
            let isChange = state != .disconnected || self.reason != reason
            return leaveQueue() + closeSession() + (isChange ? move(to: .disconnected, reason: reason, detail) : [])
        }
    }

    // MARK: - The way up

    mutating func granted() -> [Effect] {
        guard isQueued, !isUp else { return [] }
        let moved = move(to: .connecting, reason: nil)
        return moved + [.connect(ticket: ticket), .arm(after: policy.connectLimit, ticket: ticket)]
    }

    mutating func connected() -> [Effect] {
        guard state == .connecting else { return [] }
        return leaveQueue() + openSession(reason: nil)
    }

    /// Handles a discovered GATT table; the ticket stays, because the open session continues.
    mutating func discovered() -> [Effect] {
        guard state == .discovering else { return [] }
        return [change(to: .preparing, reason: nil)]
    }

    mutating func prepared(at now: Duration) -> [Effect] {
        guard state == .preparing else { return [] }
        stability.becameReady(at: now)
        return [change(to: .ready, reason: nil)]
    }

    /// Handles a stall; ticket and session stay, because values queued in the kernel still arrive.
    mutating func stalled(_ detail: String) -> [Effect] {
        guard state == .ready, reason != .silent else { return [] }
        return [change(to: .ready, reason: .silent, detail)]
    }

    mutating func resumed() -> [Effect] {
        guard state == .ready, reason == .silent else { return [] }
        return [change(to: .ready, reason: nil)]
    }

    /// Reads a changed table again; ends the link if sessions keep ending.
    mutating func sessionStale(at now: Duration, using generator: inout some RandomNumberGenerator) -> [Effect] {
        switch state {
        case .discovering:
            return replaceSession(reason: .gattError)
        case .preparing, .ready:
            guard stability.reopen(at: now) else {
                let fault = LinkFault(.gattError, "its services or subscriptions ended again")
                return failed(fault, isDown: false, using: &generator)
            }
            return replaceSession(reason: .gattError)
        case .waiting, .connecting, .disconnecting, .disconnected, .backingOff, .held, .failed:
            return []
        }
    }

    /// Keeps subscriptions to unchanged attributes; ends the link if the table keeps changing.
    mutating func tableChanged(at now: Duration, using generator: inout some RandomNumberGenerator) -> [Effect] {
        switch state {
        case .discovering:
            return replaceSession(reason: .gattError)
        case .preparing, .ready:
            guard stability.changeTable(at: now) else {
                let fault = LinkFault(.gattError, "its services keep changing")
                return failed(fault, isDown: false, using: &generator)
            }
            return replaceSession(reason: .gattError)
        case .waiting, .connecting, .disconnecting, .disconnected, .backingOff, .held, .failed:
            return []
        }
    }

    /// Opens a new session for a changed profile or configuration, and retries failed steps at once.
    mutating func reconfigured() -> [Effect] {
        switch state {
        case .discovering, .preparing, .ready: replaceSession(reason: nil)
        case .failed, .backingOff: release()
        case .waiting, .connecting, .disconnecting, .disconnected, .held: []
        }
    }

    // MARK: - The way down

    /// Ignores a link that was up for a moment only: the answer to the attempt follows.
    mutating func lost(_ fault: LinkFault, using generator: inout some RandomNumberGenerator) -> [Effect] {
        state == .connecting ? [] : failed(fault, isDown: true, using: &generator)
    }

    /// Handles a refused attempt, which leaves nothing to end unless BlueZ connects for another client.
    mutating func refused(_ fault: LinkFault, using generator: inout some RandomNumberGenerator) -> [Effect] {
        failed(fault, isDown: state == .connecting && fault.reason != .busy, using: &generator)
    }

    /// Handles the end of a link that the machine disconnected, or that counts as down.
    mutating func ended() -> [Effect] {
        guard let ended = takeEnding() else { return [] }
        switch state {
        case .disconnecting where reason == .ownedElsewhere: return disconnectedForOtherGateway()
        case .disconnecting: return move(to: .held, reason: .requested)
        case .backingOff, .failed: return [.arm(after: ended.pause, ticket: ticket)]
        case .waiting, .disconnected: return presence.isPresent ? enqueue() : []
        case .connecting, .discovering, .preparing, .ready, .held: return []
        }
    }

    // MARK: - Time

    /// Handles the end of a pause, or a timeout that counts as a failure.
    mutating func due(_ answered: Int, using generator: inout some RandomNumberGenerator) -> [Effect] {
        if let ending { return answered == ending.ticket ? ended() : [] }
        guard answered == ticket else { return [] }
        switch state {
        case .connecting, .discovering, .preparing:
            let fault = LinkFault(.timedOut, "no answer while \(state.rawValue)")
            return failed(fault, isDown: false, using: &generator)
        case .backingOff, .failed:
            return retry()
        case .waiting, .disconnected:
            guard presence.doubt == .waiting else { return [] }
            presence.endDoubt()
            return enqueue()
        case .ready, .disconnecting, .held:
            return []
        }
    }

    private mutating func retry() -> [Effect] {
        if state == .backingOff, presence.isPresent { return enqueue() }
        if state == .failed { forgetFailures() }
        return wait(reason: reason)
    }
}
