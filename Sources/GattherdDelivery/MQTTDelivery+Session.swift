import CMosquitto
import GattherdLog
import GattherdMachines
import GattherdSync

/// The connection, from dialling to closing.
extension MQTTDelivery {
    /// So many readings under way make it worth to wait for more than the first acknowledgement.
    private static let severalReadings = 8
    /// From so many readings on it is the broker that they wait for, which should not wait for long itself.
    private static let largeBacklog = 1000

    /// Threads that look the host up, or read the files of TLS, may hang for long.
    private static let mostDials = 8

    /// Looks the host up and begins to connect on a thread of its own, for that blocks.
    func dial(_ session: Int) async {
        guard dials < Self.mostDials else {
            return step(.failed(session: session, .unreachable(settings, "earlier attempts to look it up still go on")))
        }
        dials += 1
        defer { dials -= 1 }
        let (settings, first) = (settings, nextAddress)
        let will = BrokerWill(topic: topics.state, payload: "offline", isRetained: !isRetainedWillRefused)
        let result = await NamedThread.result(name: "mqtt-dial") {
            Result { () throws(BrokerFault) in try BrokerClient.dial(settings, will: will, first: first) }
        }
        // After a cancellation a late client frees itself.
        if let result { dialled(session, result) }
    }

    private func dialled(_ session: Int, _ result: Result<BrokerClient, BrokerFault>) {
        switch result {
        case .success(let client):
            guard machine.isConnecting(session) else { return }
            link = BrokerLink(session: session, client: client, settings, at: now)
            watchLink()
            armKeepalive()
        case .failure(let fault): step(.failed(session: session, fault))
        }
    }

    /// Watches what the library wants watched; its descriptor can change with each call.
    func watchLink() {
        guard let link else { return }
        let socket = link.client.handle.socket
        let interest = link.wanted
        guard socket != link.watched || interest != link.interest else { return }
        do throws(WatchError) {
            if socket == link.watched {
                try loop.rewatch(socket, for: interest)
            } else {
                if link.watched >= 0 { loop.unwatch(link.watched) }
                self.link?.watched = -1
                guard socket >= 0 else { return }
                try watch(socket, for: interest, session: link.session)
            }
            self.link?.watched = socket
            self.link?.interest = interest
        } catch {
            step(.failed(session: link.session, BrokerFault(.lost, error.description)))
        }
    }

    private func watch(_ socket: Int32, for interest: Readiness, session: Int) throws(WatchError) {
        try loop.watch(socket, for: interest) { [weak self] ready in
            self?.assumeIsolated { $0.socketIsReady(ready, session: session) }
        }
    }

    private func socketIsReady(_ ready: Readiness, session: Int) {
        guard let client = link?.client, link?.session == session else { return }
        var failure: MosquittoError?
        var outcomes: [PublishOutcome] = []
        if !ready.isDisjoint(with: [.hangUp, .error]) { link?.lane?.end() }
        do throws(MosquittoError) {
            // First what the broker said: it may be why the connection cannot be written to any more.
            if ready != .writable { try receive(by: client, &outcomes) }
            if ready.contains(.writable), client.handle.wantsToWrite {
                try client.handle.write()
                link?.lastSent = now
            }
        } catch {
            failure = error
        }
        if !outcomes.isEmpty { step(.settled(session: session, outcomes)) }
        if failure == nil { flushLink() }
        takeEvents(of: client, session: session, failure)
        if !outcomes.isEmpty { gatherAcknowledgements() }
        watchLink()
    }

    private func receive(by client: BrokerClient, _ outcomes: inout [PublishOutcome]) throws(MosquittoError) {
        try link?.receive(at: now) { acknowledged(Int32($0), Int32($1), &outcomes) }
        guard !outcomes.isEmpty, link?.readings.isEmpty == false else { return }
        // The rest of a window often waits in the broker's kernel until the first of it is acknowledged.
        client.handle.acknowledgeSegments()
        try link?.receive(at: now) { acknowledged(Int32($0), Int32($1), &outcomes) }
    }

    /// A broker acknowledges one by one: reading each as it comes would cost more than publishing.
    func gatherAcknowledgements() {
        guard let link, link.lane != nil, !link.isGathering, link.readings.count >= Self.severalReadings else {
            return
        }
        self.link?.isGathering = true
        let session = link.session
        loop.schedule(after: gathering(link.readings.count)) { [weak self] in
            self?.assumeIsolated { $0.stopGathering(session) }
        }
    }

    /// In this time a broker on the same machine acknowledges `readings`, while it also serves subscribers.
    private func gathering(_ readings: Int) -> Duration {
        .microseconds(machine.backlog < Self.largeBacklog ? 200 + 25 * min(readings, 100) : 150)
    }

    private func stopGathering(_ session: Int) {
        guard link?.session == session else { return }
        link?.isGathering = false
        socketIsReady(.readable, session: session)
    }

    /// Writes what is waiting to be written.
    func flushLink() {
        guard let session = link?.session else { return }
        let outcomes = link?.flush(at: now) ?? []
        if !outcomes.isEmpty { step(.settled(session: session, outcomes)) }
    }

    /// The callbacks' news, acknowledgements in one piece, and then the failure of the call that led to them.
    func takeEvents(of client: BrokerClient, session: Int, _ failure: MosquittoError? = nil) {
        var outcomes: [PublishOutcome] = []
        for event in client.handle.takeEvents() {
            switch event {
            case .acknowledged(let mid, let reason): acknowledged(mid, reason, &outcomes)
            case .connected(let reason, let limits): connected(reason, limits, session: session)
            case .disconnected(let reason):
                if let fault = BrokerReason(code: reason).loss { step(.failed(session: session, fault)) }
            case .subscribed(let mid, let isGranted):
                let filter = link?.subscriptions.removeValue(forKey: mid)
                if let filter, !isGranted { narrateDeafness(filter) }
            case .message(let message): receive(message)
            }
        }
        if !outcomes.isEmpty { step(.settled(session: session, outcomes)) }
        if let failure {
            step(.failed(session: session, fault(failure)))
        } else if client.handle.socket < 0 {
            // After a DISCONNECT that names no fault the library closes, and calls that a success.
            step(.failed(session: session, fault(MosquittoError(MOSQ_ERR_CONN_LOST))))
        }
        pumpOutbox()
    }

    private func fault(_ error: MosquittoError) -> BrokerFault {
        let complaint = link?.client.handle.complaint
        guard link?.isConnected == true else { return .unanswered(settings, error, complaint) }
        return complaint.map { BrokerFault(.security, $0) } ?? BrokerFault(.lost, loss(error))
    }

    /// Where two clients have one identifier each ends the other's connection, and mosquitto does not say why.
    private func loss(_ error: MosquittoError) -> String {
        let words = "the connection was lost: \(error)"
        guard let start = link?.connectedAt, now - start < .seconds(10) else { return words }
        return words + " If that goes on, look for another client with the same client_id: a gateway of the same name"
    }

    private func acknowledged(_ mid: Int32, _ reason: Int32, _ outcomes: inout [PublishOutcome]) {
        if let seq = link?.readings.removeValue(forKey: mid) {
            let verdict = vagueRefusals.verdict(BrokerReason(code: reason), of: seq, at: now)
            outcomes.append(PublishOutcome(seq: seq, verdict))
        } else if link?.others.remove(mid) != nil {
            let state = link?.states.removeValue(forKey: mid)
            if reason >= 0x80 { refused(state, BrokerReason(code: reason)) }
            if let link, link.farewell == mid { step(.farewellSaid(session: link.session)) }
        }
    }

    private func connected(_ reason: Int32, _ limits: BrokerLimits, session: Int) {
        guard reason == 0 else {
            if BrokerReason(code: reason).forbidsRetaining { isRetainedWillRefused = true }
            return step(.failed(session: session, BrokerReason(code: reason).refusal))
        }
        guard limits.takesQoS1 else { return step(.failed(session: session, .withoutQoS1)) }
        counters.connects.add()
        link?.connectedAt = now
        link?.canRetain = limits.canRetain
        isRetainedWillRefused = !limits.canRetain
        link?.aliases.maximum = limits.topicAliases
        link?.lane?.adopt(limits)
        if let keepalive = limits.keepalive { link?.keepalive = .seconds(Int64(keepalive)) }
        armKeepalive()
        step(.connected(session: session, receiveMaximum: limits.receiveMaximum))
    }

    /// Ends the session; a broker that has our farewell gets a DISCONNECT, else the will speaks for us.
    func close(_ session: Int) {
        guard let link, link.session == session else { return }
        let isSaid = link.farewell.map { !link.others.contains($0) } ?? false
        if isSaid, link.isClear { link.client.handle.disconnect() }
        if link.watched >= 0 { loop.unwatch(link.watched) }
        if let timer = link.timer { loop.cancel(timer) }
        if !link.isConnected { nextAddress += 1 }
        self.link = nil
        outbox.sessionEnded()
    }

    /// Wakes when the library has to ping, or to see that a ping was not answered; not more often.
    private func armKeepalive() {
        if let timer = link?.timer { loop.cancel(timer) }
        guard let session = link?.session, let due = link?.tickDue else { return }
        link?.timer = loop.schedule(after: due - now) { [weak self] in
            self?.assumeIsolated { $0.keepAlive(session) }
        }
    }

    private func keepAlive(_ session: Int) {
        guard let link, link.session == session, let due = link.tickDue else { return }
        if now >= due {
            guard link.isClear else {
                let fault = BrokerFault(.lost, "the broker has taken nothing for \(link.keepalive)")
                return step(.failed(session: session, fault))
            }
            var failure: MosquittoError?
            do throws(MosquittoError) { try link.client.handle.tick() } catch { failure = error }
            self.link?.lastSent = now
            self.link?.lastReceived = now
            takeEvents(of: link.client, session: session, failure)
            watchLink()
        }
        armKeepalive()
    }
}
