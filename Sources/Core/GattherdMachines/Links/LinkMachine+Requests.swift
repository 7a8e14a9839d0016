import GattherdModel

// The transitions that other devices, people and other gateways cause.
extension LinkMachine {
    // MARK: - Other devices

    mutating func yield(_ pause: Duration, _ detail: String) -> [Effect] {
        guard state == .ready else { return [] }
        let moved = move(to: .backingOff, reason: .rotated, detail, retryAfter: pause)
        stability.sessionEnded()
        stability.failed(isSessionOnly: true)
        return [.closeSession] + moved + end(thenPause: pause)
    }

    // MARK: - People

    mutating func hold() -> [Effect] {
        switch state {
        case .disconnecting where reason == .ownedElsewhere:
            return [change(to: .disconnecting, reason: .requested)]
        case .held, .disconnecting:
            return []
        case .waiting, .disconnected, .backingOff, .failed:
            return leaveQueue() + move(to: .held, reason: .requested)
        case .connecting, .discovering, .preparing, .ready:
            return leaveQueue() + closeSession() + move(to: .disconnecting, reason: .requested) + end()
        }
    }

    /// Connects as soon as no disconnect is under way.
    mutating func release() -> [Effect] {
        switch state {
        case .disconnecting where reason == .ownedElsewhere:
            return []
        case .held where withdrawal != nil, .disconnecting where withdrawal != nil:
            forgetFailures()
            return leaveQueue() + disconnectedForOtherGateway()
        case .held, .failed, .backingOff, .disconnecting:
            forgetFailures()
            return leaveQueue() + wait()
        case .waiting, .connecting, .discovering, .preparing, .ready, .disconnected:
            return []
        }
    }

    // MARK: - Other gateways

    /// Ends this gateway's link or attempt; a hold stays.
    mutating func endForOtherGateway() -> [Effect] {
        switch state {
        case .held, .disconnecting:
            return []
        case .waiting, .disconnected, .backingOff, .failed:
            return leaveQueue() + disconnectedForOtherGateway()
        case .connecting, .discovering, .preparing, .ready:
            let closed = leaveQueue() + closeSession()
            return closed + move(to: .disconnecting, reason: .ownedElsewhere, withdrawal) + end()
        }
    }

    /// The link has ended; its device may have become wanted again meanwhile.
    mutating func disconnectedForOtherGateway() -> [Effect] {
        guard let withdrawal else { return wait() }
        forgetFailures()
        return move(to: .disconnected, reason: .ownedElsewhere, withdrawal)
    }

    mutating func startAfterAdmission() -> [Effect] {
        guard state == .disconnected, reason == .ownedElsewhere else {
            return presence.isPresent ? requestTurn() : []
        }
        return wait()
    }

    private mutating func requestTurn() -> [Effect] {
        state == .waiting || state == .disconnected ? enqueue() : []
    }
}
