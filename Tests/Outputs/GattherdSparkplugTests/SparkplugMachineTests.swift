import GattherdMQTT
import GattherdMachines
import GattherdModel
import Testing

@testable import GattherdSparkplug

@Suite struct SparkplugMachineTests {
    @Test func `a start without a primary host publishes NBIRTH and the births of devices online`() {
        var bench = MachineBench()
        #expect(bench.types == ["NBIRTH"])
        bench.connect(Devices.strap)
        #expect(bench.types == ["NBIRTH", "DBIRTH", "NDATA"])
        #expect(bench.messages.map(\.seq) == [0, 1, 2])
        #expect(bench.machine.state == .online)
    }

    @Test func `bdSeq grows with each connection, over restarts, and wraps after 255`() throws {
        var bench = MachineBench()
        bench.lose()
        bench.wait(.seconds(20))
        #expect(bench.wills.map(\.bdSeq) == [0, 1])
        #expect(bench.messages("NBIRTH").map(\.bdSeq) == [0, 1])
        bench = MachineBench(bdSeq: 254)
        bench.lose()
        bench.wait(.seconds(20))
        #expect(bench.wills.map(\.bdSeq) == [255, 0])
    }

    @Test func `the numbers of messages wrap after 255`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        for second in 0..<300 {
            bench.commit(Devices.heartRate, .integer(Int64(second)), .null, at: Int64(second))
            bench.answerPing()
        }
        let numbers = bench.messages.compactMap(\.seq)
        #expect(numbers.count > 300)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == ($0 + 1) % 256 })
    }

    @Test func `births wait for the primary host`() {
        var bench = MachineBench(host: true)
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.wait(.seconds(3600))
        #expect(bench.messages.isEmpty)
        #expect(bench.machine.state == .waitingForHost)
        bench.hostIsOnline(false, at: 5)
        #expect(bench.messages.isEmpty)
        bench.hostIsOnline(true, at: 6)
        #expect(bench.types.prefix(3) == ["NBIRTH", "DBIRTH", "DDATA"])
    }

    @Test(
        arguments: [
            "", "ONLINE", "{}", "[]", #"{"online":true}"#, #"{"timestamp":9}"#, #"{"online":1,"timestamp":9}"#,
            #"{"online":"true","timestamp":9}"#, #"{"online":true,"timestamp":"9"}"#,
            #"{"online":true,"timestamp":-1}"#,
            #"{"online":true,"timestamp":1e400}"#,
        ]
    )
    func `an invalid STATE message changes nothing`(json: String) {
        var bench = MachineBench(host: true)
        bench.hostState(json)
        #expect(bench.messages.isEmpty)
        #expect(bench.reports.count == 2)
    }

    @Test func `a STATE message that is older than the last one is ignored, also after a reconnect`() {
        var bench = MachineBench(host: true)
        bench.hostIsOnline(true, at: 100)
        bench.hostIsOnline(false, at: 99)
        #expect(bench.machine.state == .online)
        bench.lose()
        bench.wait(.seconds(20))
        bench.hostIsOnline(true, at: 99)
        #expect(bench.machine.state == .waitingForHost)
        bench.hostIsOnline(true, at: 100)
        #expect(bench.machine.state == .online)
    }

    @Test func `a STATE message with a time far ahead does not make all later ones old`() {
        var bench = MachineBench(host: true)
        let now = Int(bench.time.microseconds / 1000)
        bench.hostIsOnline(true, at: .max)
        #expect(bench.machine.state == .online)
        bench.wait(.seconds(61))
        bench.hostIsOnline(false, at: now - 61_000)
        bench.hostIsOnline(false, at: now + 122_000)
        #expect(bench.machine.state == .online, "these are wrong, too")
        bench.hostIsOnline(false, at: now + 61_000)
        #expect(bench.types.last == "NDEATH")
    }

    @Test func `a host whose clock is put right is online with its next STATE message`() {
        var bench = MachineBench(host: true)
        let now = Int(bench.time.microseconds / 1000)
        bench.hostIsOnline(true, at: now + 7_200_000)
        bench.hostIsOnline(false, at: now + 7_200_000)
        bench.wait(.seconds(20))
        #expect(bench.machine.state == .waitingForHost)
        bench.hostIsOnline(true, at: now + 20_000)
        #expect(bench.machine.state == .online)
        bench.hostIsOnline(false, at: now + 19_000)
        #expect(bench.machine.state == .online)
    }

    @Test func `a host that goes offline ends the session with NDEATH, and the next one waits for it`() {
        var bench = MachineBench(host: true)
        bench.hostIsOnline(true, at: 100)
        bench.hostIsOnline(false, at: 101)
        #expect(bench.types == ["NBIRTH", "NDEATH"])
        #expect(bench.messages.last?.bdSeq == 0)
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.wait(.seconds(60))
        #expect(bench.wills.map(\.bdSeq) == [0, 1])
        #expect(bench.types == ["NBIRTH", "NDEATH"])
        bench.hostIsOnline(true, at: 200)
        #expect(bench.types.dropFirst(2).prefix(2) == ["NBIRTH", "DBIRTH"])
    }

    @Test func `a host that comes and goes causes few sessions; one that was online for long is awaited soon`() {
        var bench = MachineBench(host: true)
        for step in 0..<600 {
            bench.hostIsOnline(step % 2 == 0, at: 100 + step)
            bench.wait(.milliseconds(100))
        }
        #expect(bench.wills.count < 40)
        bench.wait(.seconds(20))
        bench.hostIsOnline(true, at: 1000)
        bench.wait(.seconds(10))
        let count = bench.wills.count
        bench.hostIsOnline(false, at: 1001)
        bench.wait(.seconds(1))
        #expect(bench.wills.count == count + 1)
    }

    @Test func `values of an outage are historical and in order; the newest one is current afterwards`() throws {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(60), .integer(1), at: 1)
        bench.answerPing()
        bench.lose()
        for second in 2...4 { bench.commit(Devices.heartRate, .integer(60 + Int64(second)), .null, at: Int64(second)) }
        bench.forgetMessages()
        bench.wait(.seconds(20))
        #expect(bench.types == ["NBIRTH", "DBIRTH", "DDATA", "DDATA"])
        let birth = try #require(bench.messages("DBIRTH").first)
        #expect(birth.metric("heart_rate/rate")?.value == .double(60))
        let rate = try #require(birth.metric("heart_rate/rate")?.alias)
        let data = bench.messages("DDATA").map { $0.payload.metrics.filter { $0.alias == rate } }
        #expect(data.first?.map(\.value) == [.double(62), .double(63), .double(64)])
        #expect(data.first?.map(\.isHistorical) == [true, true, true])
        #expect(data.last?.map(\.value) == [.double(64)])
        #expect(data.last?.map(\.isHistorical) == [false])
        bench.commit(Devices.heartRate, .integer(70), .null, at: 5)
        #expect(bench.messages.last?.payload.metrics.first?.isHistorical == false)
    }

    @Test func `a late answer of the journal to the former session loses no value`() {
        var options = SparkplugMachine.Options()
        options.fetchLimit = 2
        var bench = MachineBench(options: options)
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(61), .null, at: 1)
        bench.commit(Devices.heartRate, .integer(62), .null, at: 2)
        bench.isJournalSlow = true
        bench.commit(Devices.heartRate, .integer(63), .null, at: 3)
        bench.lose()
        bench.wait(.seconds(20))
        bench.forgetMessages()
        #expect(bench.lateAnswers.count == 2)
        bench.answerFetches()
        let historical = bench.messages("DDATA").flatMap { $0.payload.metrics.filter(\.isHistorical) }
        let values = historical.compactMap { metric in
            if case .double(let value)? = metric.value { value } else { nil }
        }
        #expect(values == [61, 62, 63])
        for _ in 0..<2 {
            bench.answerPing()
            bench.wait(.seconds(1))
        }
        #expect(bench.saved.last == 3)
    }

    @Test func `values that history has lost are reported, and the cursor passes them`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.isJournalSlow = true
        bench.commit(Devices.heartRate, .integer(61), .null, at: 1)
        let gap = JournalGap(after: 0, through: 1, reason: "deleted")
        bench.send(.fetched(JournalBatch(missing: gap), after: 0))
        bench.wait(.seconds(1))
        #expect(bench.reports.contains(.missing(gap)))
        #expect(bench.saved == [1])
    }

    @Test func `the cursor moves when the broker has answered a ping after the values`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.commit(Devices.heartRate, .integer(61), .null)
        bench.wait(.seconds(5))
        #expect(bench.saved.isEmpty)
        #expect(bench.pings == 1)
        bench.answerPing()
        bench.wait(.seconds(1))
        #expect(bench.saved == [1])
        bench.answerPing()
        bench.wait(.seconds(1))
        #expect(bench.saved == [1, 2])
        #expect(bench.machine.progress.backlog == 0)
    }

    @Test func `values that a lost connection did not confirm are published again`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.lose()
        bench.forgetMessages()
        bench.wait(.seconds(20))
        #expect(bench.messages("DDATA").first?.payload.metrics.first?.value == .double(60))
        #expect(bench.messages("DDATA").first?.payload.metrics.first?.isHistorical == true)
    }

    @Test func `unconfirmed values are bounded`() {
        var options = SparkplugMachine.Options()
        options.window = 20
        options.fetchLimit = 10
        let backlog = (1...100).map { JournalReading.of(Devices.heartRate, [.integer($0), .null], seq: $0, at: $0) }
        var bench = MachineBench(options: options, backlog: backlog)
        bench.wait(.seconds(60))
        #expect(bench.machine.progress.sent == 20)
        var answers = 0
        while bench.pings > 0, answers < 100 {
            bench.answerPing()
            bench.wait(.seconds(1))
            answers += 1
        }
        #expect(bench.machine.progress.sent == 100)
        #expect(bench.saved.last == 100)
    }

    @Test func `a backlog passes over connections that end after a few values`() {
        let backlog = (1...100).map { JournalReading.of(Devices.heartRate, [.integer($0), .null], seq: $0, at: $0) }
        var bench = MachineBench(backlog: backlog)
        for _ in 0..<100 {
            if bench.machine.progress.unconfirmed <= 10 { bench.answerPing() }
            bench.lose()
            bench.wait(.seconds(20))
        }
        #expect(bench.saved.last == 100)
    }

    @Test func `unconfirmed values become more again when the broker answers soon`() {
        let backlog = (1...2000).map { JournalReading.of(Devices.heartRate, [.integer($0), .null], seq: $0, at: $0) }
        var bench = MachineBench(backlog: backlog)
        for _ in 0..<5 {
            bench.lose()
            bench.wait(.seconds(20))
        }
        #expect(bench.machine.progress.unconfirmed == 31)
        // The first ping has waited for many seconds.
        for room in [31, 62, 124] {
            bench.answerPing()
            #expect(bench.machine.progress.room == room)
            bench.wait(.seconds(1))
        }
    }

    @Test func `a journal failure is tried again`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.isJournalBroken = true
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.wait(.seconds(10))
        #expect(bench.messages("DDATA").isEmpty)
        bench.isJournalBroken = false
        bench.wait(.seconds(2))
        #expect(bench.messages("DDATA").count == 1)
    }

    @Test func `requests for a rebirth are fulfilled at once, but not without bound`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.forgetMessages()
        bench.requestRebirth()
        #expect(bench.types == ["NBIRTH", "DBIRTH"])
        #expect(bench.messages.map(\.seq) == [0, 1])
        for _ in 0..<10_000 {
            bench.requestRebirth()
            bench.answerPing()
            bench.wait(.milliseconds(10))
        }
        #expect((10...14).contains(bench.messages("NBIRTH").count))
        bench.forgetMessages()
        bench.wait(.seconds(600))
        #expect(bench.messages("NBIRTH").count <= 1)
    }

    @Test func `a rebirth waits until the broker has the births of the last one`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.requestRebirth()
        bench.forgetMessages()
        for _ in 0..<100 {
            bench.requestRebirth()
            bench.wait(.seconds(10))
        }
        #expect(bench.types.isEmpty)
        bench.answerPing()
        #expect(bench.types == ["NBIRTH", "DBIRTH"])
        bench.lose()
        bench.wait(.seconds(10))
        bench.forgetMessages()
        bench.requestRebirth()
        #expect(bench.types == ["NBIRTH", "DBIRTH"])
    }

    @Test func `values are published while a rebirth is delayed`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        for _ in 0..<5 {
            bench.requestRebirth()
            bench.answerPing()
        }
        bench.forgetMessages()
        bench.commit(Devices.heartRate, .integer(60), .null)
        #expect(bench.types == ["DDATA"])
        bench.wait(.seconds(10))
        #expect(bench.types == ["DDATA", "NBIRTH", "DBIRTH"])
    }

    @Test func `a lost link publishes a DDEATH after the last values`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.forgetMessages()
        bench.send(.link(device: "strap", isOnline: false))
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.wait(.seconds(2))
        #expect(bench.types == ["NDATA", "DDATA", "DDEATH"])
        #expect(bench.messages("DDATA").first?.payload.metrics.first?.isHistorical == false)
    }

    @Test func `a link that returns at once publishes a DDEATH and a DBIRTH`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.forgetMessages()
        bench.send(.link(device: "strap", isOnline: false))
        bench.send(.link(device: "strap", isOnline: true))
        bench.wait(.seconds(5))
        #expect(bench.types == ["NDATA", "DDEATH", "DBIRTH", "NDATA"])
    }

    @Test func `values of a device that is offline are historical, between a birth and a death`() {
        let backlog = [JournalReading.of(Devices.heartRate, [.integer(60), .integer(9)], seq: 1, at: 1)]
        let bench = MachineBench(backlog: backlog)
        #expect(bench.types == ["NBIRTH", "DBIRTH", "DDATA", "DDEATH"])
        #expect(bench.messages("DDATA").first?.payload.metrics.map(\.isHistorical) == [true, true])
    }

    @Test(arguments: [false, true])
    func `a stored record that is downloaded later is historical, and no birth has it`(isByException: Bool) {
        var bench = MachineBench(isByException: isByException)
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(70), .null, at: 900)
        bench.forgetMessages()
        for value in [Int64(50), 50, 70] { bench.commit(Devices.heartRate, .integer(value), .null, at: 600 + value) }
        let metrics = bench.messages("DDATA").compactMap { $0.payload.metrics.first }
        #expect(metrics.map(\.isHistorical) == [true, true, true])
        #expect(metrics.map(\.value) == [.double(50), .double(50), .double(70)])
        bench.requestRebirth()
        bench.wait(.seconds(10))
        let birth = bench.messages("DBIRTH").last?.metric("heart_rate/rate")
        #expect(birth?.value == .double(70) && birth?.timestamp == 900_000)
    }

    @Test func `after the clock was set back the values that arrive are current`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(70), .null, at: 4600)
        bench.forgetMessages()
        bench.commit(Devices.heartRate, .integer(71), .null, at: 1000)
        #expect(bench.messages("DDATA").last?.payload.metrics.first?.isHistorical == false)
        bench.requestRebirth()
        bench.wait(.seconds(10))
        #expect(bench.messages("DBIRTH").last?.metric("heart_rate/rate")?.value == .double(71))
    }

    @Test func `a removed device gets a DDEATH and no later DBIRTH`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.forgetMessages()
        bench.send(.removed(device: "strap"))
        #expect(bench.types == ["DDEATH", "NDATA"])
        bench.requestRebirth()
        #expect(bench.messages("DBIRTH").isEmpty)
    }

    @Test func `the late readings of a removed device are published, and do not bring it back`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.isJournalSlow = true
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.send(.removed(device: "strap"))
        bench.forgetMessages()
        bench.answerFetches()
        #expect(bench.types == ["DBIRTH", "DDATA", "DDEATH"])
        #expect(!bench.machine.node.contains("strap"))
        bench.commit(Devices.heartRate, .integer(61), .null)
        #expect(bench.machine.node.contains("strap"), "a new device has the name")
    }

    @Test func `a stop publishes what remains, waits for the broker, and ends with NDEATH`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.forgetMessages()
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.send(.stop(drain: .seconds(5)))
        #expect(bench.types == ["DDATA"])
        bench.answerPing()
        #expect(bench.types == ["DDATA", "NDEATH"])
        #expect(bench.saved == [1])
        #expect(bench.isFinished)
    }

    @Test func `a stop does not wait forever for a silent broker`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.commit(Devices.heartRate, .integer(60), .null)
        bench.send(.stop(drain: .seconds(5)))
        bench.wait(.seconds(6))
        #expect(bench.types.last == "NDEATH")
        #expect(bench.isFinished)
    }

    @Test(arguments: [false, true]) func `a stop ends an output that is not connected`(isBrokerDead: Bool) {
        var bench = MachineBench(host: true)
        bench.isBrokerDead = isBrokerDead
        bench.lose()
        bench.wait(.seconds(1))
        bench.send(.stop(drain: .seconds(5)))
        bench.wait(.seconds(10))
        #expect(bench.isFinished)
    }

    @Test func `a broker that does not answer is tried again with growing pauses`() {
        var bench = MachineBench(host: true)
        bench.isBrokerDead = true
        bench.lose()
        bench.wait(.seconds(600))
        #expect((20...60).contains(bench.wills.count))
        bench.isBrokerDead = false
        bench.wait(.seconds(30))
        #expect(bench.machine.state == .waitingForHost)
    }
}

extension SparkplugMessage {
    var bdSeq: UInt8? {
        guard case .long(let number)? = metric("bdSeq")?.value else { return nil }
        return UInt8(exactly: number)
    }
}
