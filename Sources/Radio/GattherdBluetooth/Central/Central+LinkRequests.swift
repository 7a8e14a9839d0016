import GattherdSync

// Requests of links, in turns.
extension Central {
    /// Makes the platform's link; scans first for a peripheral that the platform does not know.
    func makeLink(_ link: Link, _ deadline: inout ConnectDeadline) async throws(BluetoothError) {
        var isHeard = false
        while deadline.remaining() > .zero {
            do throws(BluetoothError) {
                return try await requestLink(link, &deadline, isHeard: isHeard)
            } catch  where error.kind == .unknownPeripheral {
                try await find(link, until: deadline)
                isHeard = true
            }
        }
        throw Self.late(link, deadline)
    }

    static func late(_ link: Link, _ deadline: ConnectDeadline, _ cause: String? = nil) -> BluetoothError {
        let detail = "\(link.id.address) was not ready within \(max(.zero, deadline.timeout))"
        return BluetoothError(.timedOut, cause.map { "\(detail): \($0)" } ?? detail)
    }

    /// Requests the link from the platform; a link that is up needs no turn.
    private func requestLink(
        _ link: Link,
        _ deadline: inout ConnectDeadline,
        isHeard: Bool
    ) async throws(BluetoothError) {
        let id = link.id
        switch await backend.status(of: id)?.isConnected {
        case true: return try await connectNow(link, deadline)
        case nil where state == .poweredOn:
            // A scan uses another adapter, which may hear the same address.
            guard registry.withLock({ $0.platform.adapter(.address(id.adapter))?.isPowered == true }) else {
                throw BluetoothError(.adapterUnavailable, "the adapter \(id.adapter) is missing or off")
            }
            throw BluetoothError(.unknownPeripheral, "\(id.address) was not seen")
        default: break
        }
        let (request, asked) = (turnRequest(link, deadline, isHeard: isHeard), ContinuousClock.now)
        try await turns.perform(request) { () throws(BluetoothError) in
            deadline.waited(from: asked)
            try await connectNow(link, deadline)
        }
    }

    private func connectNow(_ link: Link, _ deadline: ConnectDeadline) async throws(BluetoothError) {
        do throws(BluetoothError) {
            guard !deadline.includesTurns else { return try await connectPunctually(link, deadline) }
            try await backend.connect(link.id, timeout: deadline.remaining())
        } catch  where error.kind == .timedOut && error.original == nil {
            throw Self.late(link, deadline)
        } catch {
            throw error.unlessCancelled(.connectionFailed)
        }
    }

    /// The additional time of the platform's own deadline, so that ours passes first.
    private static let platformMargin = Duration.seconds(5)

    /// Requests the link for a caller, who does not wait until the platform has cancelled a late attempt.
    private func connectPunctually(_ link: Link, _ deadline: ConnectDeadline) async throws(BluetoothError) {
        let isMade = Locked(false)
        do throws(BluetoothError) {
            _ = try await withDeadline(deadline.end, Self.late(link, deadline)) { () throws(BluetoothError) in
                try await self.backend.connect(link.id, timeout: deadline.remaining() + Self.platformMargin)
                isMade.withLock { $0 = true }
                return true
            }
        } catch {
            guard isMade.withLock({ $0 }) else { throw error }
        }
        // A link that was made at the last moment is ours: the next steps end it.
        guard isMade.withLock({ $0 }) else { throw BluetoothError(.cancelled, "cancelled") }
    }

    private func turnRequest(_ link: Link, _ deadline: ConnectDeadline, isHeard: Bool) -> ConnectTurns.Request {
        let failures = link.state.withLock { $0.attempts }
        let request = ConnectTurns.Request(
            peripheral: link.id,
            failures: isHeard ? 0 : failures,
            deadline: deadline.endOfWait,
            late: Self.late(link, deadline, "other peripherals were connecting all the time")
        )
        guard !deadline.includesTurns, !isHeard else { return request }
        return request.absent { await self.hear(link.id) }
    }

    private func find(_ link: Link, until deadline: ConnectDeadline) async throws(BluetoothError) {
        let advertisements = internalScan(link.id, timeout: deadline.remaining()).makeAsyncIterator()
        do throws(BluetoothError) {
            while let advertisement = try await advertisements.nextAdvertisement() {
                if advertisement.peripheral.id == link.id { return }
            }
        } catch {
            throw error.kind == .timedOut ? Self.late(link, deadline, "no scan found it") : error
        }
        throw BluetoothError(.cancelled, "cancelled")
    }

    /// Scans until the peripheral is heard; false if it cannot scan or the task is cancelled.
    private func hear(_ id: PeripheralID) async -> Bool {
        let start = ContinuousClock.now
        let advertisements = internalScan(id, allowDuplicates: true).makeAsyncIterator()
        // The first element may be an advertisement of an earlier scan.
        while let advertisement = try? await advertisements.nextAdvertisement() {
            if advertisement.time >= start, advertisement.peripheral.id == id { return true }
        }
        return false
    }

    private func internalScan(_ id: PeripheralID, allowDuplicates: Bool = false, timeout: Duration? = nil) -> Scan {
        var filter = ScanFilter()
        filter.addresses = [id.address]
        var scan = scan(filter, allowDuplicates: allowDuplicates, timeout: timeout)
        scan.isInternal = true
        return scan
    }
}
