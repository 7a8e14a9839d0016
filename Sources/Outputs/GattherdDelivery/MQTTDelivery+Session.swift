import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdSync

/// The connection, from dialling to closing.
extension MQTTDelivery {
    /// The number of readings in flight from which acknowledgements are gathered.
    private static let severalReadings = 8
    /// The backlog from which the broker limits the rate; gathering is then short.
    private static let largeBacklog = 1000

    /// The maximum number of dialling threads; a name lookup or reading the TLS files may hang.
    private static let mostDials = 8

    /// Resolves the host and connects on a thread of its own, as both block.
    func dial(_ session: Int) async {
        guard dials < Self.mostDials else {
            return step(.failed(session: session, .unreachable(settings, "earlier attempts are still running")))
        }
        dials += 1
        defer { dials -= 1 }
        let (settings, first) = (settings, nextAddress)
        let result = await NamedThread.result(name: "mqtt-dial") {
            Result { () throws(BrokerFault) in try DialledConnection.dial(settings, first: first) }
        }
        // After a cancellation a late socket closes itself.
        guard let result, machine.isConnecting(session) else { return }
        do throws(BrokerFault) {
            try begin(result.get(), session)
        } catch {
            step(.failed(session: session, error))
        }
    }

    private func begin(_ dial: DialledConnection, _ session: Int) throws(BrokerFault) {
        let will = BrokerWill(topic: topics.state, payload: "offline", isRetained: !isRetainedWillRefused)
        link = BrokerLink(session: session, try dial.connection(settings, will: will, at: now))
        flushLink()
        watchLink()
    }

    /// Watches the socket for the readiness that the connection needs.
    func watchLink() {
        guard let link, link.watched != link.interest else { return }
        let interest = link.interest
        do throws(WatchError) {
            if link.watched == nil {
                try watch(link.connection.descriptor, for: interest, session: link.session)
            } else {
                try loop.rewatch(link.connection.descriptor, for: interest)
            }
            link.watched = interest
        } catch {
            step(.failed(session: link.session, BrokerFault(.lost, error.description)))
        }
    }

    private func watch(_ socket: Int32, for interest: DescriptorEvents, session: Int) throws(WatchError) {
        try loop.watch(socket, for: interest) { [weak self] ready in
            self?.assumeIsolated { $0.socketIsReady(ready, session: session) }
        }
    }

    private func socketIsReady(_ ready: DescriptorEvents, session: Int) {
        guard let link, link.session == session else { return }
        // Read first: the broker's last packet may explain why writing fails.
        if !ready.isDisjoint(with: [.hangUp, .error]) { link.connection.endSending() }
        if ready != .writable { receive(link) }
        flushLink()
        pumpOutbox()
        watchLink()
    }

    private func receive(_ link: BrokerLink) {
        var failure: MQTTConnectionError?
        var outcomes: [PublishOutcome] = []
        do throws(MQTTConnectionError) {
            try link.connection.receive(at: now)
            takeEvents(link, &outcomes)
            // The rest of a window often waits in the broker's kernel until its first part is acknowledged.
            if !outcomes.isEmpty, !link.readings.isEmpty { try link.connection.receiveFurther(at: now) }
        } catch {
            failure = error
        }
        takeEvents(link, &outcomes)
        if !outcomes.isEmpty { step(.answered(session: link.session, outcomes)) }
        if let failure {
            if failure.isEndOfConnection { blame("it ends the session without a reason") }
            return step(.failed(session: link.session, fault(failure)))
        }
        if !outcomes.isEmpty { gatherAcknowledgements() }
    }

    /// Delays reading while acknowledgements arrive one by one; reading each would cost more than publishing.
    func gatherAcknowledgements() {
        guard let link, !link.isGathering, link.readings.count >= Self.severalReadings else { return }
        link.isGathering = true
        let session = link.session
        loop.schedule(after: gathering(link.readings.count)) { [weak self] in
            self?.assumeIsolated { $0.stopGathering(session) }
        }
    }

    /// The time in which a local broker acknowledges `readings` while it also serves subscribers.
    private func gathering(_ readings: Int) -> Duration {
        .microseconds(machine.backlog < Self.largeBacklog ? 200 + 25 * min(readings, 100) : 150)
    }

    private func stopGathering(_ session: Int) {
        guard let link, link.session == session else { return }
        link.isGathering = false
        socketIsReady(.readable, session: session)
    }

    /// Sends the waiting bytes.
    func flushLink() {
        guard let link else { return }
        do throws(MQTTConnectionError) {
            let outcomes = try link.flush(at: now)
            if !outcomes.isEmpty { step(.answered(session: link.session, outcomes)) }
        } catch {
            step(.failed(session: link.session, fault(error)))
        }
    }

    /// Handles the broker's packets and collects the outcomes of readings.
    private func takeEvents(_ link: BrokerLink, _ outcomes: inout [PublishOutcome]) {
        for event in link.connection.takeEvents() {
            guard self.link === link else { return }
            switch event {
            case .acknowledged(let identifier, let reason): acknowledged(identifier, reason, &outcomes)
            case .connected(let reason, let text, let limits): connected(reason, text, limits, link)
            case .disconnected(let reason, let text):
                step(.answered(session: link.session, outcomes))
                if reason.mayConcernTopic { blame(reason.words) }
                step(.failed(session: link.session, reason.loss(text) ?? fault(.ended)))
            case .subscribed(let identifier, let reason):
                let packet = link.others.remove(identifier)
                accepted(identifier)
                if let filter = packet?.topic, reason.isFailure { logRefusedSubscription(filter) }
            case .unsubscribed(let identifier): _ = link.others.remove(identifier)
            case .message(let message): receive(message)
            }
        }
    }

    private func fault(_ error: MQTTConnectionError) -> BrokerFault {
        let complaint = link?.connection.tls?.complaint
        guard link?.isConnected == true else { return .unanswered(settings, error, complaint) }
        return complaint.map { BrokerFault(.security, $0) } ?? BrokerFault(.lost, loss(error))
    }

    /// The words for a lost connection.
    ///
    /// Two clients with one id end each other's session, and mosquitto gives no reason.
    private func loss(_ error: MQTTConnectionError) -> String {
        let words = "the connection was lost: \(error)"
        guard let start = link?.connectedAt, now - start < .seconds(10) else { return words }
        return words + "; if this repeats, look for another client with the same client_id: a gateway of the same name"
    }

    private func acknowledged(_ identifier: UInt16, _ reason: MQTTReason, _ outcomes: inout [PublishOutcome]) {
        if let (seq, topic) = link?.readings.removeValue(forKey: identifier) {
            outcomes.append(PublishOutcome(seq: seq, acknowledgedReading(seq, topic, identifier, reason)))
            return
        }
        recordAnswer(identifier, reason, isTopicRefused: reason.concernsTopic)
        guard let packet = link?.others.remove(identifier) else { return }
        if let topic = packet.topic, !reason.isFailure { busyTopics.recordAcceptance(of: topic) }
        if reason.isFailure { refused(packet.content, reason) }
        if let link, link.farewell == identifier { step(.offlinePublished(session: link.session)) }
    }

    private func acknowledgedReading(
        _ seq: Int64,
        _ topic: String,
        _ identifier: UInt16,
        _ reason: MQTTReason
    ) -> PublishOutcome.Verdict {
        link?.newestAcknowledged = max(link?.newestAcknowledged ?? 0, seq)
        switch busyTopics.verdict(reason, on: topic, at: now) {
        case .reading(let verdict):
            recordAnswer(identifier, reason, isTopicRefused: reason.concernsTopic)
            return verdict
        case .topicRefused(let words):
            recordAnswer(identifier, reason, isTopicRefused: true)
            return .refused(words)
        }
    }

    private func recordAnswer(_ identifier: UInt16, _ reason: MQTTReason, isTopicRefused: Bool) {
        if isTopicRefused {
            setAside(refusals.refused(identifier, reason.words, at: now))
        } else {
            accepted(identifier, isAccepted: !reason.isFailure)
        }
    }

    private func connected(_ reason: MQTTReason, _ text: String?, _ limits: BrokerLimits, _ link: BrokerLink) {
        guard reason == .success else {
            if reason.forbidsRetaining { isRetainedWillRefused = true }
            return step(.failed(session: link.session, reason.refusal(text)))
        }
        guard limits.takesQoS1 else { return step(.failed(session: link.session, .withoutQoS1)) }
        counters.connects.add()
        link.connectedAt = now
        link.canRetain = limits.canRetain
        isRetainedWillRefused = !limits.canRetain
        link.aliases.maximum = limits.topicAliases
        armKeepalive()
        link.receiveMaximum = limits.receiveMaximum
        refusals.began(at: now)
        armCaution(link)
        armDeferral(link)
        step(.connected(session: link.session, receiveMaximum: refusals.isCautious ? 1 : limits.receiveMaximum))
    }

    /// Ends the session: with DISCONNECT if the broker has the final `offline`, else the broker publishes the will.
    func close(_ session: Int) {
        guard let link, link.session == session else { return }
        let isSaid = link.farewell.map { !link.others.contains($0) } ?? false
        if isSaid, link.connection.isClear { link.connection.disconnect(at: now) }
        if link.watched != nil { loop.unwatch(link.connection.descriptor) }
        if let timer = link.timer { loop.cancel(timer) }
        if !link.isConnected { nextAddress += 1 }
        self.link = nil
        heldStates = [:]
        outbox.sessionEnded(unanswered: link.others.responses)
    }

    /// Schedules the next ping or timeout, and no wakeup more often.
    private func armKeepalive() {
        guard let link else { return }
        if let timer = link.timer { loop.cancel(timer) }
        let session = link.session
        link.timer = link.connection.deadline.map { deadline in
            loop.schedule(after: deadline - now) { [weak self] in
                self?.assumeIsolated { $0.keepAlive(session) }
            }
        }
    }

    private func keepAlive(_ session: Int) {
        guard let link, link.session == session else { return }
        do throws(MQTTConnectionError) {
            try link.connection.tick(at: now)
        } catch {
            return step(.failed(session: session, fault(error)))
        }
        watchLink()
        armKeepalive()
    }
}
