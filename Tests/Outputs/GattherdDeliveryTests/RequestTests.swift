import GattherdDelivery
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)))
struct RequestTests {
    struct Case: Sendable {
        let payload: String
        let value: ControlValue
        let result: String
    }

    static let cases = [
        Case(payload: "42", value: .integer(42), result: #"{"status":"ok","value":42}"#),
        Case(payload: " 42\n", value: .integer(42), result: #"{"status":"ok","value":42}"#),
        Case(payload: "1.5", value: .real(1.5), result: #"{"status":"ok","value":1.5}"#),
        Case(payload: "true", value: .boolean(true), result: #"{"status":"ok","value":true}"#),
        Case(payload: "eco mode", value: .text("eco mode"), result: #"{"status":"ok","value":"eco mode"}"#),
        Case(payload: "", value: .trigger, result: #"{"status":"ok","value":null}"#),
        Case(
            payload: #"{"value": 7, "transaction": {"id": [1, "x"]}}"#,
            value: .integer(7),
            result: #"{"status":"ok","value":7,"transaction":{"id": [1, "x"]}}"#
        ),
    ]

    @Test(arguments: cases, [DeliverySettings.Version.v5, .v311])
    func `a set is answered with its result`(sample: Case, version: DeliverySettings.Version) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        try await fixture.delivery(version).running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(sample.payload, to: "gattherd/lab/lamp/number/set")
            let messages = await subscriber.messages { $0.last(on: "lamp/number/result") != nil }
            #expect(messages.last(on: "lamp/number/result") == sample.result)
            #expect(messages.last { $0.topic.hasSuffix("/result") }?.isRetained == false)
        }
        let request = fixture.requests.withLock { $0.first }
        #expect(request?.device == "lamp" && request?.control == "number" && request?.value == sample.value)
    }

    @Test func `a control that cannot be set is answered with the reason`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery(control: { .failure(.notReady(device: $0.device)) })
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(#"{"value":1,"transaction":"t"}"#, to: "gattherd/lab/lamp/number/set")
            let messages = await subscriber.messages { $0.last(on: "lamp/number/result") != nil }
            #expect(
                messages.last(on: "lamp/number/result")
                    == #"{"status":"error","error":"device 'lamp' is not ready","reason":"not_ready","#
                    + #""transaction":"t"}"#
            )
        }
    }

    @Test func `a forbidden control is neither set nor offered to Home Assistant`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery { $0.permissions.devices["lamp"] = ["number"] }
        let controls = ["number", "led"].map { ControlDescriptor(name: $0, kind: .trigger, characteristic: 0x2A39) }
        delivery.describe(DeviceDescription(device: "lamp", address: "C0", streams: [], controls: controls))
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            for control in ["led", "number"] {
                try await fixture.broker.publish("1", to: "gattherd/lab/lamp/\(control)/set")
            }
            try await fixture.broker.publish("1", to: "gattherd/lab/dial/led/set")
            let messages = await subscriber.messages { $0.last(on: "dial/led/result") != nil }
            let expected =
                #"{"status":"error","error":"'led' of 'lamp' may not be set by MQTT","reason":"not_allowed"}"#
            #expect(messages.last(on: "lamp/led/result") == expected)
            #expect(messages.last(on: "lamp/number/result") == #"{"status":"ok","value":1}"#)
            let description = messages.first { $0.topic.hasSuffix("lab_c0/config") }?.payload ?? ""
            #expect(description.contains("lamp/number/set") && !description.contains("lamp/led"))
        }
        #expect(fixture.requests.withLock { $0.map(\.device) } == ["lamp", "dial"])
        #expect(
            fixture.events.withLock { $0 }.contains(#"{"state":"set_not_allowed","device":"lamp","control":"led"}"#)
        )
    }

    static let garbage: [[UInt8]] = [
        Array("{".utf8), Array(#"{"value":}"#.utf8), Array(#"{"vlaue":1}"#.utf8), Array(#"{"value":[1]}"#.utf8),
        Array("[1]".utf8), [0xFF, 0xFE, 0x00], [0x00], Array("\"open".utf8), Array(#"{"value":1}x"#.utf8),
        Array(repeating: UInt8(ascii: "["), count: 4000), Array(repeating: UInt8(ascii: "9"), count: 100_000),
        Array(repeating: 0, count: 3_000_000),
    ]

    @Test(arguments: garbage.indices)
    func `garbage is answered with an error, and delivery continues`(index: Int) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/+/+/result")
        let readings = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/+")
        let delivery = fixture.delivery()
        try await delivery.running {
            await delivery.wait(for: .connected)
            fixture.log.commit(1)
            await readings.messages { $0.seqs == [1] }
            try await fixture.broker.publish(Self.garbage[index], to: "gattherd/lab/lamp/number/set")
            let messages = await subscriber.messages { !$0.isEmpty }
            #expect(messages.last(on: "lamp/number/result")?.hasPrefix(#"{"status":"error","error":""#) == true)
            fixture.log.commit(1)
            await readings.messages { $0.seqs == [1, 2] }
        }
        #expect(fixture.requests.withLock { $0.isEmpty })
    }

    static let impossible = [
        "lamp/\(String(repeating: "x", count: 60_000))/set", "\(String(repeating: "y", count: 65))/number/set",
        "lamp/Ünder ground/set", "lamp//set", "bridge/request/\(String(repeating: "z", count: 30_000))",
    ]

    @Test(arguments: [true, false])
    func `a request with an invalid name is refused without a handler`(isAllowed: Bool) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery { $0.permissions.isEverythingAllowed = isAllowed }
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            for topic in Self.impossible { try await fixture.broker.publish("1", to: "gattherd/lab/\(topic)") }
            // Topics of excessive length are refused before their names are checked.
            try await eventually {
                delivery.counters.misnamedRequests.value + delivery.counters.messagesRefused.value
                    == UInt64(Self.impossible.count)
            }
            let answer = "\(String(repeating: "y", count: 65))/number/result"
            let messages = await subscriber.messages { $0.last(on: answer) != nil }
            let answers = messages.map(\.topic).filter { $0.hasSuffix("/result") || $0.contains("/response/") }
            #expect(answers.allSatisfy { $0.utf8.count < 300 })
        }
        #expect(fixture.requests.withLock { $0.isEmpty })
        #expect(!fixture.events.withLock { $0 }.contains { $0.contains("set_not_allowed") })
    }

    @Test(
        arguments: [DeliverySettings.Version.v5, .v311]
    )
    func `a retained set is ignored and counted, before and after the start`(
        version: DeliverySettings.Version
    ) async throws {
        let fixture = try await DeliveryFixture.started()
        try await fixture.broker.publish("1", to: "gattherd/lab/lamp/number/set", retained: true)
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/+/+/result")
        let delivery = fixture.delivery(version)
        try await delivery.running {
            try await eventually { delivery.counters.retainedRequestsIgnored.value > 0 }
            try await fixture.broker.publish("2", to: "gattherd/lab/lamp/number/set")
            await subscriber.messages { !$0.isEmpty }
        }
        #expect(fixture.requests.withLock { $0.map(\.value) } == [.integer(2)])
    }

    @Test func `a live set with the retain flag is ignored at once with MQTT 5`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish("1", to: "gattherd/lab/lamp/number/set", retained: true)
            try await eventually { delivery.counters.retainedRequestsIgnored.value > 0 }
        }
        #expect(fixture.requests.withLock { $0.isEmpty })
    }

    @Test func `the response topic and correlation data of MQTT 5 are used`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        try await fixture.delivery().running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(
                "5".utf8,
                to: "gattherd/lab/lamp/number/set",
                "-D",
                "publish",
                "response-topic",
                "me/answers",
                "-D",
                "publish",
                "correlation-data",
                "abc"
            )
            let messages = await subscriber.messages { $0.contains { $0.topic == "me/answers" } }
            let answer = messages.last { $0.topic == "me/answers" }
            #expect(answer?.payload == #"{"status":"ok","value":5}"#)
            #expect(answer?.correlation == "abc" && answer?.contentType == "application/json")
            #expect(messages.last(on: "lamp/number/result") == nil)
        }
    }

    @Test(arguments: [(1024, "me/answers"), (1025, "gattherd/lab/lamp/number/result")])
    func `long correlation data is not returned; the response goes to the gateway's topic`(
        length: Int,
        topic: String
    ) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        try await fixture.delivery().running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(
                "5".utf8,
                to: "gattherd/lab/lamp/number/set",
                "-D",
                "publish",
                "response-topic",
                "me/answers",
                "-D",
                "publish",
                "correlation-data",
                String(repeating: "a", count: length)
            )
            let messages = await subscriber.messages { $0.contains { $0.payload == #"{"status":"ok","value":5}"# } }
            let answer = messages.last { $0.payload == #"{"status":"ok","value":5}"# }
            #expect(answer?.topic == topic && answer?.correlation.count == (length > 1024 ? 0 : length))
        }
    }

    @Test func `a response topic that is a filter is not used`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        try await fixture.delivery().running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(
                "5".utf8,
                to: "gattherd/lab/lamp/number/set",
                "-D",
                "publish",
                "response-topic",
                "me/answers/"
            )
            await subscriber.messages { $0.contains { $0.topic == "me/answers/" } }
        }
    }

    @Test func `a slow control delays neither readings nor other controls`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let gate = LatestValue(false)
        let delivery = fixture.delivery(control: { request in
            if request.control == "slow" { for await isOpen in gate.watch() where isOpen { break } }
            return .success(request.value)
        })
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish("1", to: "gattherd/lab/lamp/slow/set")
            try await fixture.broker.publish("2", to: "gattherd/lab/lamp/fast/set")
            await subscriber.messages { $0.last(on: "lamp/fast/result") != nil }
            fixture.log.commit(10)
            let messages = await subscriber.messages { $0.seqs.count == 10 }
            #expect(messages.last(on: "lamp/slow/result") == nil)
            gate.set(true)
            await subscriber.messages { $0.last(on: "lamp/slow/result") != nil }
        }
    }

    @Test func `sets of one control are processed in the order of arrival`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/lamp/number/result")
        let delivery = fixture.delivery()
        try await delivery.running {
            await delivery.wait(for: .connected)
            fixture.log.commit(1)
            await fixture.log.waitForCursor(1)
            try await fixture.broker.publish(
                (1...50).map { "\($0)\n" }.joined().utf8,
                to: "gattherd/lab/lamp/number/set",
                lines: true
            )
            await subscriber.messages { $0.count >= 50 }
        }
        #expect(fixture.requests.withLock { $0.map(\.value) } == (1...50).map { .integer($0) })
    }

    @Test(
        arguments: [DeliverySettings.Version.v5, .v311]
    )
    func `each request of a burst is answered, and the last value wins`(
        version: DeliverySettings.Version
    ) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/lamp/number/result")
        // The machine of the daemon's controls, with a device that is slow at each write.
        let throttled = Locked(ThrottledControl())
        let delivery = fixture.delivery(version, control: { request in await throttled.set(request.value) })
        try await delivery.running {
            await delivery.wait(for: .connected)
            fixture.log.commit(1)
            await fixture.log.waitForCursor(1)
            try await fixture.broker.publish(
                (1...1001).map { "{\"value\":\($0),\"transaction\":\($0)}\n" }.joined().utf8,
                to: "gattherd/lab/lamp/number/set",
                lines: true
            )
            try await eventually { throttled.withLock { $0.newest == .integer(1001) } }
            throttled.finish()
            let answers = await subscriber.messages { $0.count >= 1001 }.map(\.payload)
            #expect(answers.count == 1001)
            #expect(Set(answers.compactMap { $0.split(separator: #""transaction":"#).last }).count == 1001)
            #expect(answers.count { $0.contains(#""reason":"superseded""#) } == 1000)
            #expect(answers.contains(#"{"status":"ok","value":1001,"transaction":1001}"#))
        }
        #expect(delivery.counters.answersDropped.value == 0)
    }

    static let bridgeCases = [
        (
            "connect", #"{"device":"strap","transaction":9}"#,
            #"{"status":"ok","data":{"connecting":"strap"},"transaction":9}"#
        ),
        ("connect", "strap", #"{"status":"ok","data":{"connecting":"strap"}}"#),
        ("disconnect", "nobody", #"{"status":"error","error":"there is no device 'nobody'"}"#),
        ("link", #"{"device":"strap","link":true}"#, #"{"status":"ok","data":{"connecting":"strap"}}"#),
        ("link", #"{"device":"nobody","link":false}"#, #"{"status":"error","error":"there is no device 'nobody'"}"#),
        (
            "link", #"{"device":"strap"}"#,
            #"{"status":"error","error":"write the device and the wanted link: {\"device\": \"…\", \"link\": true}"}"#
        ),
        ("health", "", #"{"status":"ok","data":{}}"#),
        ("history", "strap", #"{"status":"error","error":"write an object: {\"device\": …}"}"#),
        ("history", #"{"limit":0}"#, #"{"status":"error","error":"'limit' must be a number from 1 to 10000"}"#),
        ("history", #"{"since":5}"#, #"{"status":"error","error":"'since' must be text"}"#),
        (
            "history", #"{"from":"1h","transaction":1}"#,
            #"{"status":"error","error":"unknown key 'from'; use 'device', 'stream', 'metric', 'since', 'until', "#
                + #"'every', 'limit' and 'transaction'","transaction":1}"#
        ),
        (
            "history", #"{"limit":1,"device":"strap","transaction":2}"#,
            #"{"status":"ok","data":{"chunk":0,"last":true,"next":"1970-01-01T00:00:01.000000Z","rows":["#
                + #"{"ts":"1970-01-01T00:00:00.000000Z","device":"strap","value":0}]},"transaction":2}"#
        ),
        (
            "dance", "",
            #"{"status":"error","error":"unknown request 'dance'; use connect, disconnect, link, history or health"}"#
        ),
    ]

    @Test(arguments: bridgeCases)
    func `the gateway answers requests to itself`(verb: String, payload: String, response: String) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        try await fixture.delivery().running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(payload, to: "gattherd/lab/bridge/request/\(verb)")
            let messages = await subscriber.messages { $0.last(on: "bridge/response/\(verb)") != nil }
            #expect(messages.last(on: "bridge/response/\(verb)") == response)
        }
    }

    @Test func `history comes in bounded pieces in order, and short responses do not wait for it`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        try await fixture.delivery().running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish(
                #"{"limit":10000,"transaction":7}"#,
                to: "gattherd/lab/bridge/request/history"
            )
            let messages = await subscriber.messages { $0.contains { $0.payload.contains(#""last":true"#) } }
            let pieces = messages.filter { $0.topic.hasSuffix("/response/history") }.map(\.payload)
            for (index, piece) in pieces.enumerated() {
                #expect(piece.hasPrefix(#"{"status":"ok","data":{"chunk":\#(index),"last":"#))
                #expect(piece.hasSuffix(#","transaction":7}"#))
                #expect(piece.utf8.count < 20_000)
            }
            let values = pieces.joined().split(separator: #""value":"#).dropFirst().map {
                Int($0.prefix { $0.isNumber })
            }
            #expect(pieces.count > 10)
            #expect(values == Array(0..<5000))
        }
    }
}

/// A control whose one write ends with ``Locked/finish()``; of the values set before, the newest wins.
private struct ThrottledControl: Sendable {
    fileprivate(set) var newest: ControlValue?
    fileprivate var waiting: CheckedContinuation<Result<ControlValue, ControlError>, Never>?
}

extension Locked<ThrottledControl> {
    fileprivate func set(_ value: ControlValue) async -> Result<ControlValue, ControlError> {
        await withCheckedContinuation { continuation in
            let superseded = withLock { control in
                defer { (control.newest, control.waiting) = (value, continuation) }
                return control.waiting
            }
            superseded?.resume(returning: .failure(.superseded))
        }
    }

    fileprivate func finish() {
        let (value, waiting) = withLock { control in
            defer { control.waiting = nil }
            return (control.newest ?? .trigger, control.waiting)
        }
        waiting?.resume(returning: .success(value))
    }
}
