import GattherdMachines
import Testing

extension TopicRefusals.Options {
    /// Options that set topics aside without a delay.
    fileprivate static var immediate: Self {
        var options = Self()
        options.delay = .zero
        return options
    }
}

@Suite struct TopicRefusalsTests {
    /// A broker that ends the session when it receives a topic, and acknowledges all earlier packets.
    private struct World {
        let denied: Set<String>
        var refusals = TopicRefusals(.immediate)
        var now = Duration.zero
        var sessions = 0
        var accepted: [String] = []
        var setAside: [String] = []

        init(_ denied: String...) {
            self.denied = Set(denied)
        }

        /// Publishes admitted topics, `window` at once, until the broker ends the session.
        mutating func session(_ topics: [String], window: Int) {
            refusals.began(at: now)
            sessions += 1
            let admitted = topics.filter { refusals.admits($0, at: now) }
            let deferred = admitted.filter { refusals.defers($0, at: now) }
            var rest = (admitted.filter { !deferred.contains($0) } + deferred)[...]
            while !rest.isEmpty {
                let batch = rest.prefix(refusals.isCautious ? 1 : window)
                rest = rest.dropFirst(batch.count)
                for (index, topic) in batch.enumerated() {
                    refusals.sent(topic, identifier: UInt16(index + 1), .message)
                }
                for (index, topic) in batch.enumerated() {
                    guard !denied.contains(topic) else {
                        if case .setAside(let found) = refusals.sessionEnded("no", at: now) { setAside.append(found) }
                        return
                    }
                    accepted += refusals.acknowledged(UInt16(index + 1))
                }
            }
        }
    }

    private static let topics = ["a", "b", "c", "d", "e"]

    @Test(arguments: topics, [1, 2, 5])
    func `a topic for which the broker ends sessions is found, and only that`(denied: String, window: Int) {
        var world = World(denied)
        for _ in 0..<6 { world.session(Self.topics, window: window) }
        #expect(world.setAside == [denied])
        #expect(world.refusals.all.map(\.topic) == [denied])
        #expect(!world.refusals.isCautious)
    }

    @Test func `several refused topics are found one after the other`() {
        var world = World("b", "e")
        for _ in 0..<12 { world.session(Self.topics, window: 5) }
        #expect(world.setAside == ["b", "e"])
    }

    @Test func `a topic that is set aside is tried rarely, and returns when the broker accepts it`() {
        var world = World("b")
        for _ in 0..<4 { world.session(Self.topics, window: 5) }
        let found = world.sessions
        world.now = .seconds(599)
        world.session(Self.topics, window: 5)
        #expect(world.refusals.all.count == 1)
        var late = World()
        late.refusals = world.refusals
        late.now = .seconds(601)
        late.session(Self.topics, window: 5)
        #expect(late.accepted == ["b"])
        #expect(late.refusals.isEmpty)
        for minute in 10..<600 {
            world.now = .seconds(60 * minute)
            world.session(["b"], window: 1)
        }
        #expect(world.setAside == ["b"])
        #expect(world.refusals.all.first?.retryAt ?? .zero <= world.now + .seconds(3600))
        #expect(world.sessions == found + 1 + 590)
    }

    @Test func `sessions that end idle or at random blame no topic`() {
        var refusals = TopicRefusals(.immediate)
        for round in 0..<50 {
            refusals.began(at: .seconds(round))
            for number in 1...5 as ClosedRange<UInt16> { refusals.sent("\(number)", identifier: number, .message) }
            for number in 1...UInt16(round % 5 + 1) { _ = refusals.acknowledged(number) }
            #expect(refusals.sessionEnded("gone", at: .seconds(round)) == nil)
        }
        #expect(refusals.isEmpty)
    }

    /// Ends a session at its first packet for `topic`, after the broker has accepted `others`.
    private func endSession(
        _ refusals: inout TopicRefusals,
        at topic: String,
        after others: String...,
        mayBeTooLarge: Bool = false,
        now: Duration
    ) -> TopicRefusals.Finding? {
        refusals.began(at: now)
        for other in others {
            refusals.sent(other, identifier: 1, .message)
            _ = refusals.acknowledged(1)
        }
        refusals.sent(topic, identifier: 2, .message)
        return refusals.sessionEnded("gone", mayBeTooLarge: mayBeTooLarge, at: now)
    }

    @Test func `the first topic is set aside only after it has been blamed for 20 s`() {
        var refusals = TopicRefusals()
        for attempt in 0..<10 {
            #expect(endSession(&refusals, at: "a", after: "x", now: .seconds(attempt)) == nil)
        }
        #expect(endSession(&refusals, at: "a", after: "x", now: .seconds(20)) == .setAside("a"))
        for attempt in 1...3 {
            let finding = endSession(&refusals, at: "b", after: "x", now: .seconds(20))
            #expect(finding == (attempt == 3 ? .setAside("b") : nil))
        }
    }

    @Test func `a topic whose message may be too large is set aside only after 20 s, also behind another one`() {
        var refusals = TopicRefusals()
        for second in [0, 1, 20] { _ = endSession(&refusals, at: "a", after: "x", now: .seconds(second)) }
        #expect(refusals["a"] != nil)
        for second in 21..<41 {
            let finding = endSession(&refusals, at: "b", after: "x", mayBeTooLarge: true, now: .seconds(second))
            #expect(finding == nil)
        }
        #expect(endSession(&refusals, at: "b", after: "x", mayBeTooLarge: true, now: .seconds(41)) == .setAside("b"))
    }

    @Test func `a broker that accepts nothing has no topic set aside`() {
        var refusals = TopicRefusals(.immediate)
        var findings: [TopicRefusals.Finding?] = []
        for second in 0..<30 {
            let topic = ["a", "b"].first { !refusals.defers($0, at: .seconds(10 * second)) } ?? "a"
            findings.append(endSession(&refusals, at: topic, now: .seconds(10 * second)))
        }
        #expect(refusals.isEmpty)
        #expect(findings.contains(.brokerAcceptsNothing))
        #expect(findings.allSatisfy { $0 == nil || $0 == .brokerAcceptsNothing })
    }

    @Test func `a topic is deferred until the broker accepts another one, for a few seconds`() {
        var refusals = TopicRefusals(.immediate)
        #expect(endSession(&refusals, at: "a", now: .zero) == nil)
        refusals.began(at: .seconds(1))
        #expect(refusals.defers("a", at: .seconds(1)))
        #expect(!refusals.defers("b", at: .seconds(1)))
        #expect(!refusals.defers("a", at: .seconds(6)))
        refusals.sent("filter", identifier: 1, .subscription)
        _ = refusals.acknowledged(1)
        #expect(refusals.defers("a", at: .seconds(1)))
        refusals.sent("b", identifier: 2, .message)
        _ = refusals.acknowledged(2)
        #expect(!refusals.defers("a", at: .seconds(1)))
    }

    @Test func `topics that requesters chose are never set aside`() {
        var refusals = TopicRefusals(.immediate)
        for number in 0..<1100 {
            refusals.began(at: .zero)
            refusals.sent("evil/\(number)", identifier: 1, .chosenTopic)
            #expect(refusals.refused(1, "no", at: .zero) == .ignored)
            refusals.sent("evil/\(number)", identifier: 2, .chosenTopic)
            #expect(refusals.sessionEnded("gone", at: .zero) == .chosenTopic)
        }
        #expect(refusals.isEmpty && !refusals.isCautious)
        refusals.sent("lamp", identifier: 1, .message)
        #expect(refusals.refused(1, "no", isProven: true, at: .zero) == .setAside("lamp"))
    }

    @Test func `a topic that the broker omits three times is set aside`() {
        var refusals = TopicRefusals()
        #expect(refusals.omitted("a", at: .zero) == nil)
        #expect(refusals.omitted("a", at: .zero) == nil)
        refusals.sent("a", identifier: 1, .message)
        _ = refusals.acknowledged(1)
        for attempt in 1...3 { #expect(refusals.omitted("a", at: .zero) == (attempt == 3 ? "a" : nil)) }
    }

    /// Sends a message, which the broker refuses by name.
    private func refuse(
        _ refusals: inout TopicRefusals,
        _ topic: String,
        at now: Duration = .zero
    ) -> TopicRefusals.Answer {
        refusals.sent(topic, identifier: 1, .message)
        return refusals.refused(1, "not authorized", at: now)
    }

    /// Sends a message, which the broker accepts.
    private func accept(_ refusals: inout TopicRefusals, _ topic: String) -> [String] {
        refusals.sent(topic, identifier: 1, .message)
        return refusals.acknowledged(1)
    }

    @Test func `a topic that the broker refuses by name is set aside once it accepts another, and reported once`() {
        var refusals = TopicRefusals()
        for second in [0, 1, 19] {
            #expect(refuse(&refusals, "a", at: .seconds(second)) == .unproven)
            #expect(accept(&refusals, "b").isEmpty)
        }
        #expect(refuse(&refusals, "a", at: .seconds(20)) == .setAside("a"))
        #expect(refuse(&refusals, "a", at: .seconds(20)) == .isSetAside)
        #expect(!refusals.isCautious)
        let isAdmitted = refusals.admits("a", at: .seconds(21))
        #expect(!isAdmitted)
    }

    @Test func `a refusal counts for its topic although later packets were answered, or very many were sent`() {
        var refusals = TopicRefusals()
        refusals.sent("a", identifier: 1, .message)
        refusals.sent("b", identifier: 2, .message)
        #expect(refusals.acknowledged(2).isEmpty)
        #expect(refusals.refused(1, on: "a", "not authorized", at: .zero) == .unproven)
        refusals.sent("a", identifier: 3, .message)
        for _ in 0..<1000 { refusals.sent("a/bare", identifier: 0, .message) }
        #expect(refusals.refused(3, on: "a", "not authorized", at: .zero) == .unproven)
        #expect(refusals.refused(4, "not authorized", at: .zero) == .ignored)
    }

    @Test func `a topic that is refused now and then is not set aside`() {
        var refusals = TopicRefusals(.immediate)
        for _ in 0..<100 {
            for _ in 0..<2 {
                #expect(refuse(&refusals, "a") == .unproven)
                #expect(accept(&refusals, "b").isEmpty)
            }
            #expect(accept(&refusals, "a").isEmpty)
        }
        #expect(refusals.isEmpty)
    }

    @Test func `a broker that refuses everything by name has no topic set aside, even if it accepted some before`() {
        var refusals = TopicRefusals()
        refusals.began(at: .zero)
        for topic in ["a", "b", "c"] { #expect(accept(&refusals, topic).isEmpty) }
        for second in 0..<59 {
            for topic in ["a", "b", "c"] { #expect(refuse(&refusals, topic, at: .seconds(second)) == .unproven) }
        }
        #expect(refuse(&refusals, "b", at: .seconds(60)) == .brokerAcceptsNothing)
        #expect(refusals.isEmpty)
        #expect(accept(&refusals, "a").isEmpty)
        for topic in ["a", "b"] { #expect(refuse(&refusals, topic, at: .seconds(61)) == .unproven) }
    }

    @Test func `caution ends when all suspect packets are answered, or after a while`() {
        var refusals = TopicRefusals()
        refusals.began(at: .zero)
        refusals.sent("a", identifier: 1, .message)
        refusals.sent("b", identifier: 2, .message)
        #expect(refusals.sessionEnded("gone", at: .zero) == nil)
        refusals.began(at: .seconds(1))
        #expect(refusals.isCautious)
        refusals.sent("a", identifier: 1, .message)
        _ = refusals.acknowledged(1)
        #expect(refusals.isCautious)
        #expect(refusals.relaxAt == .seconds(11))
        let isEarly = refusals.relax(at: .seconds(10))
        let isLate = refusals.relax(at: .seconds(11))
        #expect(!isEarly && isLate && !refusals.isCautious)
    }

    @Test func `a packet that is never answered makes its topic suspect, but is not blamed`() {
        var refusals = TopicRefusals(.immediate)
        for round in 0..<10 {
            refusals.began(at: .seconds(round))
            refusals.sent("a", identifier: 0, .message)
            refusals.sent("b", identifier: 1, .message)
            #expect(refusals.sessionEnded("gone", at: .seconds(round)) == nil)
            #expect(refusals.isCautious)
        }
    }

    @Test func `packets without an answer count as accepted with a later answer, and are bounded`() {
        var refusals = TopicRefusals()
        refusals.began(at: .zero)
        for _ in 0..<5000 { refusals.sent("a", identifier: 0, .message) }
        refusals.sent("b", identifier: 1, .message)
        _ = refusals.acknowledged(1)
        #expect(refusals.sessionEnded("gone", at: .zero) == nil)
        #expect(!refusals.isCautious)
    }
}
