import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// Publishes all messages other than readings: retained states, responses and events.
///
/// On the loop's thread only.
final class MessagePublisher {
    /// The maximum number of unanswered packets other than readings.
    private static let window = 16
    /// The maximum number of unanswered packets during clean-up, so that responses always have room.
    private static let cleanUpWindow = 8
    /// The pause before the next search if there were too many retained messages.
    private static let cleanUpPause = Duration.seconds(1)

    private let context: DeliveryContext
    private let admission: TopicAdmission
    private var announcements: Announcements
    private var queue = PublishQueue()
    private let held: HeldStates
    private let board: DeliveryBoard
    private var subscriptions: RefusedSubscriptions
    private let repetitionTimer: DeadlineTimer
    /// True while the next step of the removal of retained messages is planned.
    private var areRemovalsScheduled = false
    /// The current session, once it is connected.
    private var session: BrokerSession?
    /// True after the last session; nothing is published any more.
    private var isFinished = false

    init(_ context: DeliveryContext, _ admission: TopicAdmission, _ board: DeliveryBoard) {
        self.context = context
        self.admission = admission
        self.board = board
        repetitionTimer = DeadlineTimer(context.time)
        subscriptions = RefusedSubscriptions(context.settings.options)
        announcements = Announcements(context)
        held = HeldStates(context, admission)
    }

    /// Applies changes and queues the messages that they cause; returns the removed devices.
    func apply(_ changes: DeliveryChanges) -> [String] {
        let removed = announcements.apply(changes, &queue)
        continueRemovals()
        for event in changes.events where !queue.append(event) { context.counters.eventsDropped.add() }
        return removed
    }

    /// Publishes all descriptions and discovery payloads again.
    func describeAll() {
        announcements.queueDescriptions(&queue)
        publishQueued()
    }

    /// Handles a message other than a request; returns a device that was removed, because it is not enrolled.
    func receive(_ message: BrokerMessage) -> String? {
        defer {
            repeatStates()
            continueRemovals()
        }
        return announcements.receive(message, &queue)
    }

    /// Publishes states again that another client requested or overwrote, as fast as their limits allow.
    private func repeatStates() {
        guard announcements.repetitionTime != nil else { return }
        announcements.repeatStates(&queue, at: context.now)
        repetitionTimer.set(announcements.repetitionTime) { [weak self] in
            self?.repeatStates()
            self?.publishQueued()
        }
    }

    /// Records the facts that a device reports about itself in a reading, for its description.
    func record(_ reading: JournalReading) {
        announcements.record(reading, &queue)
        publishQueued()
    }

    /// Publishes a response.
    func post(_ response: MQTTResponse) {
        if isFinished || !queue.responses.append(response) { drop(response) }
        publishQueued()
    }

    private func drop(_ response: MQTTResponse) {
        context.counters.answersDropped.add()
        context.logger.droppedResponse(response.topic, count: context.counters.answersDropped.value)
    }
}

/// Follows the session with the broker.
extension MessagePublisher {
    func startSession(_ session: BrokerSession) {
        self.session = session
        queue.startSession()
    }

    /// Publishes all retained states, then the subscriptions, then `online`.
    func publishAllStates() {
        announcements.startSession(canRetain: session?.sender.canRetain ?? true, &queue)
        publishQueued()
        continueRemovals()
    }

    /// Continues the removal of retained messages at intervals.
    private func continueRemovals() {
        guard announcements.isSearching, !areRemovalsScheduled, session != nil else { return }
        areRemovalsScheduled = true
        after(context.settings.formerBasePause) { publisher in
            publisher.areRemovalsScheduled = false
            for base in publisher.announcements.finishRemovals(&publisher.queue) {
                publisher.context.settings.forgetBase(base)
            }
            publisher.publishQueued()
            publisher.continueRemovals()
        }
    }

    /// Publishes `offline` for all devices and for the gateway.
    func publishOffline() {
        announcements.goOffline(&queue)
        publishQueued()
    }

    /// Ends the session; the next one starts with all states and the unanswered responses.
    func endSession(unanswered: [MQTTResponse]) {
        session = nil
        held.removeAll()
        repetitionTimer.set(nil)
        areRemovalsScheduled = false
        subscriptions.endSession()
        board.show(subscriptions)
        queue.endSession(unanswered: unanswered)
    }

    /// Drops all responses; no session follows.
    func finish() {
        isFinished = true
        context.counters.answersDropped.add(UInt64(queue.responses.messageCount))
    }

    /// Calls `action` after `pause`, unless the session has ended.
    private func after(_ pause: Duration, _ action: @escaping (MessagePublisher) -> Void) {
        context.loop.schedule(after: pause) { [weak self, weak session] in
            if let self, let session, session === self.session { action(self) }
        }
    }
}

/// Publishes messages.
extension MessagePublisher {
    /// Publishes the queued messages that have room.
    func publishQueued() {
        guard session != nil else { return }
        queue.responses.endPauses(at: context.now)
        while let session, session.sender.isConnected, session.sender.isClear, hasRoom(session),
            let item = nextItem(session)
        {
            do throws(MQTTRefusal) {
                try publish(item, to: session)
            } catch {
                dropUnpublished(item, error)
            }
            session.flush()
        }
        // Readings do not wait for an `online` that is deferred.
        if queue.contains(.online), admission.defers(context.topics.state) { session?.open() }
        continueCleanUp()
        session?.watch()
    }

    /// True if another packet may be sent; during the search for a refused topic, one at a time.
    private func hasRoom(_ session: BrokerSession) -> Bool {
        admission.isCautious ? session.isIdle : session.sender.messagesInFlight < Self.window
    }

    private func nextItem(_ session: BrokerSession) -> PublishQueue.Item? {
        let isDeferring = admission.isDeferring
        let isCleanUpAllowed = session.sender.messagesInFlight < Self.cleanUpWindow
        return queue.next(isCleanUpAllowed: isCleanUpAllowed) { state in
            isDeferring && announcements.topics(of: state).contains { admission.defers($0) }
        }
    }

    /// Looks for retained messages to clear again, after a clean-up whose queue overflowed.
    private func continueCleanUp() {
        guard queue.takeIncompleteCleanUp() else { return }
        after(Self.cleanUpPause) { publisher in
            publisher.queue.append(.subscribeToRetained)
            publisher.publishQueued()
        }
    }

    private func publish(_ item: PublishQueue.Item, to session: BrokerSession) throws(MQTTRefusal) {
        switch item {
        case .state(let state): try publish(state, to: session)
        case .response(let response): try publish(response, to: session)
        case .event(let json):
            let topic = context.topics.event
            guard admission.admits(topic) else { return context.counters.eventsDropped.add() }
            _ = try session.sender.publish(json, to: topic, .other, .transientMessage)
        }
    }

    private func publish(_ response: MQTTResponse, to session: BrokerSession) throws(MQTTRefusal) {
        let response = admission.areChosenTopicsRefused ? response.onOwnTopic ?? response : response
        guard response.isOnChosenTopic || admission.admits(response.topic) else { return drop(response) }
        _ = try session.sender.publish(
            response.payload,
            to: response.topic,
            .response(response),
            response.isOnChosenTopic ? .chosenTopic : .message,
            MessageProperties(correlation: response.correlation)
        )
    }

    private func publish(_ state: PublishQueue.State, to session: BrokerSession) throws(MQTTRefusal) {
        var identifier: UInt16?
        for packet in announcements.packets(of: state) {
            if let filter = packet.wildcardFilter, !session.sender.takesWildcards {
                // A subscription that the broker does not support may end the session.
                subscribed(state, to: filter, .wildcardSubscriptionsNotSupported)
            } else if let topic = packet.topic, !admission.admits(topic) {
                hold(state, on: topic)
            } else {
                identifier = try send(packet, of: state, to: session)
            }
        }
        if state == .online { session.open() }
        if state == .offline { session.awaitOffline(identifier) }
    }

    /// Sends a packet of a state; a subscription beyond the broker's packet limit counts as refused.
    private func send(
        _ packet: Announcements.Packet,
        of state: PublishQueue.State,
        to session: BrokerSession
    ) throws(MQTTRefusal) -> UInt16? {
        do throws(MQTTRefusal) {
            return try session.sender.send(packet, of: state)
        } catch {
            guard case .subscription(let filter, _) = packet, case .tooLarge = error else { throw error }
            subscribed(state, to: filter, .packetTooLarge)
            return nil
        }
    }

    /// Drops a message that could not be written.
    private func dropUnpublished(_ item: PublishQueue.Item, _ error: MQTTRefusal) {
        switch item {
        case .state(.online): session?.fail(.withoutState(context.topics.state, error))
        case .state(let state): context.logger.unpublished("\(state)", error)
        case .response(let response):
            guard case .refused = error.verdict else { return delay(response) }
            context.counters.answersDropped.add()
            context.logger.unpublished(response.topic, error)
        case .event:
            context.counters.eventsDropped.add()
            context.logger.unpublished(context.topics.event, error)
        }
    }
}

/// Refused messages.
extension MessagePublisher {
    /// Handles the broker's refusal of a packet other than a reading.
    func refused(_ content: PacketsInFlight.Content, _ reason: MQTTReason) {
        switch content {
        case .response(let response): refused(response, reason)
        case .state(let state): refused(state, reason)
        case .repeated: break
        case .subscription, .other: context.logger.refusedMessage(reason)
        }
    }

    /// Handles the broker's answer to a subscription; a refused one is tried again later.
    func subscribed(_ state: PublishQueue.State, to filter: String, _ reason: MQTTReason) {
        announcements.answered(state, isRefused: reason.isFailure)
        let pause = subscriptions.answered(state, to: filter, reason)
        board.show(subscriptions)
        if reason.isFailure { context.logger.refusedSubscription(filter, isNeeded: state.isNeeded) }
        guard let pause else { return }
        after(pause) { publisher in
            publisher.subscriptions.retry(state)
            guard !publisher.announcements.isLeaving else { return }
            publisher.queue.append(state)
            publisher.publishQueued()
        }
    }

    /// Publishes a refused state later, if its topic is set aside, the broker is busy or accepts nothing.
    private func refused(_ state: PublishQueue.State, _ reason: MQTTReason) {
        context.logger.refusedMessage(reason)
        if let topic = announcements.topics(of: state).first, admission.isSetAside(topic) {
            return hold(state, on: topic)
        }
        guard let pause = retryPause(after: reason) else { return }
        after(pause) { publisher in
            guard !publisher.announcements.isLeaving else { return }
            publisher.announcements.repeatState(state, &publisher.queue)
            publisher.publishQueued()
        }
    }

    /// The pause before a refused state is sent again; `nil` for a state that the broker will never accept.
    private func retryPause(after reason: MQTTReason) -> Duration? {
        if case .busy = reason.verdict { return context.settings.options.retryPause }
        return reason.concernsTopic ? context.settings.options.refusedBackoff.minimum : nil
    }

    /// Publishes a refused response later if the broker is busy, or else on the gateway's own topic.
    private func refused(_ response: MQTTResponse, _ reason: MQTTReason) {
        if case .busy = reason.verdict, let again = response.again { return delay(again) }
        if response.isOnChosenTopic {
            context.counters.messagesRefused.add()
            admission.suspendChosenTopics(reason.words)
        } else {
            context.logger.refusedMessage(reason)
        }
        guard let own = response.onOwnTopic else { return drop(response) }
        queue.responses.putBack([own])
        publishQueued()
    }

    private func delay(_ response: MQTTResponse) {
        let pause = context.settings.options.retryPause
        queue.responses.putBack(response, due: context.now + pause)
        context.loop.schedule(after: pause) { [weak self] in self?.publishQueued() }
    }

    private func hold(_ state: PublishQueue.State, on topic: String) {
        guard !announcements.isLeaving else { return }
        held.add(state, on: topic) { [weak self] states in
            for state in states { self?.queue.append(state) }
            self?.publishQueued()
        }
    }
}
