import GattherdDBus
import Testing

@testable import GattherdSimulator

@Suite struct PairingTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"
    private static let none = DBusValue.properties([Property]())
    private static let bonded = "\(dev) Bonded=true Paired=true"

    /// A connected device with one characteristic that needs encryption.
    private static func lock(_ more: String = "") throws -> Bench {
        var bench = try Bench(
            kind: "custom",
            """
            , services: [{uuid: fff0, characteristics: [
              {uuid: fff1, properties: [read, write, notify], value: '01', encrypted: true, write: {max_length: 1}}
            ]}]\(more)
            """
        )
        bench.connect()
        return bench
    }

    private static let shown = ", passkey: 123456"

    // MARK: Pair

    @Test func `Pair connects, resolves and sets Bonded and Paired in one signal without asking an agent`() throws {
        var bench = try Bench(kind: "battery")
        bench.registerAgent("NoInputNoOutput")
        bench.scan()
        bench.call(Bench.device, "Pair")
        let lines = bench.wait(.seconds(1))
        #expect(lines.contains("\(Self.dev) Connected=true"))
        #expect(lines.suffix(2) == [Self.bonded, "reply 3"])
    }

    @Test func `Pair without an agent fails`() throws {
        var bench = try Self.lock()
        #expect(bench.call(Bench.device, "Pair") == ["fail 3 AuthenticationFailed: Authentication Failed"])
    }

    @Test func `Pair of a bonded device is never answered`() throws {
        var bench = try Self.lock()
        bench.registerAgent("NoInputNoOutput")
        bench.call(Bench.device, "Pair")
        bench.wait(.seconds(1))
        #expect(bench.call(Bench.device, "Pair") == [])
        bench.call(Bench.adapter, "StopDiscovery")
        try bench.order(.drop("p"))
        #expect(bench.call(Bench.device, "Pair") == [])
        #expect(bench.wait(.seconds(60)) == [])
    }

    @Test func `Pair on a link encrypted without a bond fails with Already Paired`() throws {
        var bench = try Self.lock()
        bench.registerAgent("NoInputNoOutput")
        let notPairable = DBusValue.variant(.boolean(false))
        bench.call(Bench.adapter, "Set", .string(InterfaceName.adapter), .string("Pairable"), notPairable)
        bench.call(Bench.device, "Pair")
        #expect(bench.wait(.seconds(1)) == ["\(Self.dev) Paired=true", "reply 5"])
        #expect(bench.call(Bench.device, "Pair") == ["fail 6 AlreadyExists: Already Paired"])
        #expect(
            try bench.order(.drop("p")).contains("\(Self.dev) ServicesResolved=false Paired=false Connected=false")
        )
    }

    @Test func `a second Pair is refused, and CancelPairing ends the first and cancels the agent's request`() throws {
        var bench = try Self.lock(Self.shown)
        bench.registerAgent("KeyboardOnly")
        #expect(bench.call(Bench.device, "CancelPairing") == ["fail 4 DoesNotExist: Does Not Exist"])
        #expect(bench.call(Bench.device, "Pair") == ["ask :1.1 RequestPasskey"])
        #expect(bench.call(Bench.device, "Pair") == ["fail 6 InProgress: In Progress"])
        #expect(
            bench.call(Bench.device, "CancelPairing") == [
                "notify :1.1 Cancel", "fail 5 AuthenticationCanceled: Authentication Canceled", "reply 7",
            ]
        )
        #expect(bench.answer(true, passkey: 123_456) == [])
        #expect(bench.wait(.seconds(60)) == [])
    }

    @Test func `Pair fails if the peripheral is absent or Disconnect is called`() throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        try bench.order(.vanish("p"))
        bench.call(Bench.device, "Pair")
        #expect(bench.wait(.seconds(40)) == ["fail 2 Failed: Software caused connection abort"])
        bench.call(Bench.device, "Pair")
        #expect(
            bench.call(Bench.device, "Disconnect") == [
                "fail 3 AuthenticationCanceled: Authentication Canceled", "reply 4",
            ]
        )
    }

    @Test func `Disconnect and a drop cancel the agent's request`() throws {
        var bench = try Self.lock(Self.shown)
        bench.registerAgent("KeyboardOnly")
        bench.call(Bench.device, "Pair")
        let canceled = ["notify :1.1 Cancel", "fail 4 AuthenticationCanceled: Authentication Canceled"]
        #expect(bench.call(Bench.device, "Disconnect") == canceled)
        bench.wait(.seconds(2))
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(1))
        bench.call(Bench.device, "Pair")
        let lines = try bench.order(.drop("p"))
        #expect(lines.contains("notify :1.1 Cancel"))
        #expect(lines.contains("fail 7 AuthenticationCanceled: Authentication Canceled"))
    }

    @Test func `Pair fails while the adapter is off`() throws {
        var bench = try Self.lock()
        try bench.order(.setPowered(adapter: "hci0", false))
        #expect(bench.call(Bench.device, "Pair") == ["fail 3 AuthenticationFailed: Authentication Failed"])
    }

    // MARK: Requests that need encryption

    @Test(arguments: ["ReadValue", "WriteValue", "StartNotify", "AcquireNotify"])
    func `a request that needs encryption pairs after the agent's authorization`(member: String) throws {
        var bench = try Self.lock()
        bench.registerAgent("KeyboardDisplay")
        let arguments: [DBusValue] =
            switch member {
            case "WriteValue": [.bytes([7]), Self.none]
            case "StartNotify": []
            default: [Self.none]
            }
        bench.call(try bench.characteristic(0), member, arguments)
        #expect(bench.wait(.milliseconds(10)) == ["ask :1.1 RequestAuthorization"])
        #expect(bench.answer(true) == [])
        let lines = bench.wait(.milliseconds(10))
        #expect(lines.first == Self.bonded)
        #expect(lines.last?.contains("reply 4") == true || lines.last?.hasSuffix("for 4 mtu 517") == true)
    }

    @Test func `a request that needs encryption is never answered without an agent`() throws {
        var bench = try Self.lock()
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        #expect(!bench.wait(.seconds(100)).contains { $0.contains("reply") || $0.contains("fail") })
    }

    @Test func `a connected device is removed 30 s after its pairing failed, without a Connected signal`() throws {
        var bench = try Self.lock()
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        #expect(bench.wait(.seconds(30)) == [])
        #expect(
            bench.wait(.milliseconds(2)) == [
                "(disconnected local)", "-desc000d GattDescriptor1", "-char000b GattCharacteristic1",
                "-service000a GattService1", "-\(Self.dev) Device1",
            ]
        )
    }

    @Test func `a request fails 30 s after the agent's refusal and the link stays until then`() throws {
        var bench = try Self.lock()
        bench.registerAgent("NoInputNoOutput")
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        bench.wait(.milliseconds(10))
        #expect(bench.answer(false) == [])
        #expect(bench.wait(.seconds(29)) == [])
        #expect(bench.wait(.seconds(1)).first == "fail 4 Failed: Operation failed with ATT error: 0x0e")
    }

    @Test func `a trusted device is not removed after a failed pairing`() throws {
        var bench = try Self.lock()
        bench.call(Bench.device, "Set", .string(InterfaceName.device), .string("Trusted"), .variant(.boolean(true)))
        #expect(bench.call(Bench.device, "Pair") == ["fail 4 AuthenticationFailed: Authentication Failed"])
        #expect(bench.wait(.seconds(100)) == [])
    }

    @Test func `requests that wait for encryption are answered after any client has paired`() throws {
        var bench = try Self.lock()
        let path = try bench.characteristic(0)
        bench.call(path, "ReadValue", Self.none)
        bench.wait(.seconds(1))
        bench.registerAgent("NoInputNoOutput")
        bench.call(Bench.device, "Pair")
        #expect(bench.wait(.seconds(1)) == [Self.bonded, "reply 5", "char000b Value=01", "reply 3 01"])
    }

    @Test func `an agent that does not answer loses the link after 30 s`() throws {
        var bench = try Self.lock()
        bench.registerAgent("NoInputNoOutput")
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        bench.wait(.milliseconds(2))
        #expect(bench.wait(.seconds(29)) == [])
        #expect(
            bench.wait(.seconds(1)) == [
                "(disconnected authentication)", "\(Self.dev) ServicesResolved=false Connected=false",
                "notify :1.1 Cancel", "fail 4 Failed: Operation failed with ATT error: 0x0e",
            ]
        )
    }

    // MARK: Agents

    @Test func `the caller's own agent is asked before the default agent, which is the first registered`() throws {
        var bench = try Self.lock(Self.shown)
        bench.registerAgent("KeyboardOnly", from: ":1.2")
        bench.registerAgent("KeyboardOnly", from: ":1.1")
        #expect(bench.call(Bench.device, "Pair") == ["ask :1.1 RequestPasskey"])
        bench.answer(false)
        #expect(bench.call(Bench.device, "Pair", from: ":1.9") == ["ask :1.2 RequestPasskey"])
        bench.answer(false)
        bench.call("/org/bluez", "RequestDefaultAgent", .objectPath("/agent"))
        #expect(bench.call(Bench.device, "Pair", from: ":1.9") == ["ask :1.1 RequestPasskey"])
    }

    @Test func `a client registers one agent and only that client can unregister it`() throws {
        var bench = try Bench(kind: "battery")
        let agent = DBusValue.objectPath("/agent")
        let missing = "DoesNotExist: Does Not Exist"
        #expect(bench.call("/org/bluez", "RequestDefaultAgent", agent) == ["fail 1 \(missing)"])
        #expect(bench.call("/org/bluez", "UnregisterAgent", agent) == ["fail 2 \(missing)"])
        #expect(
            bench.call("/org/bluez", "RegisterAgent", agent, .string("Telepathy")) == [
                "fail 3 InvalidArguments: Invalid arguments in method call"
            ]
        )
        #expect(bench.call("/org/bluez", "RegisterAgent", agent, .string("")) == ["hci0 Pairable=true", "reply 4"])
        #expect(
            bench.call("/org/bluez", "RegisterAgent", .objectPath("/other"), .string("")) == [
                "fail 5 AlreadyExists: Already Exists"
            ]
        )
        #expect(bench.call("/org/bluez", "UnregisterAgent", .objectPath("/other")) == ["fail 6 \(missing)"])
        #expect(bench.call("/org/bluez", "UnregisterAgent", agent, from: ":1.2") == ["fail 7 \(missing)"])
        #expect(bench.call("/org/bluez", "UnregisterAgent", agent) == ["hci0 Pairable=false", "reply 8"])
    }

    @Test func `an agent that leaves the bus refuses its request and an unregistered agent leaves it pending`() throws {
        var bench = try Self.lock(Self.shown)
        bench.registerAgent("KeyboardOnly", from: ":1.2")
        bench.call(Bench.device, "Pair")
        #expect(
            bench.leave(":1.2") == ["fail 4 AuthenticationFailed: Authentication Failed", "hci0 Pairable=false"]
        )
        bench.registerAgent("KeyboardOnly")
        bench.call(Bench.device, "Pair")
        bench.call("/org/bluez", "UnregisterAgent", .objectPath("/agent"))
        #expect(bench.answer(true, passkey: 123_456) == [])
        #expect(bench.wait(.seconds(29)) == [])
        #expect(bench.wait(.seconds(1)).last == "fail 6 AuthenticationCanceled: Authentication Canceled")
    }

    static let questions: [(device: String, agent: String, question: String)] = [
        (", passkey: 42", "KeyboardOnly", "RequestPasskey"),
        (", passkey: 42", "KeyboardDisplay", "RequestPasskey"),
        (", pairing: compares, passkey: 42", "DisplayYesNo", "RequestConfirmation 42"),
        (", pairing: compares, passkey: 42", "KeyboardDisplay", "RequestConfirmation 42"),
        (", pairing: compares, passkey: 42", "KeyboardOnly", "RequestPasskey"),
        (", pairing: enters-passkey, passkey: 42", "DisplayOnly", "DisplayPasskey 42 0"),
        (", pairing: enters-passkey, passkey: 42", "KeyboardDisplay", "DisplayPasskey 42 0"),
    ]

    @Test(arguments: questions)
    func `the agent's request depends on the capabilities of both sides`(
        device: String,
        agent: String,
        question: String
    ) throws {
        var bench = try Self.lock(device)
        bench.registerAgent(agent)
        #expect(bench.call(Bench.device, "Pair") == ["ask :1.1 \(question)"])
        bench.answer(true, passkey: 42)
        #expect(bench.wait(.seconds(1)) == [Self.bonded, "reply 4"])
    }

    @Test(arguments: ["shows-passkey", "compares", "enters-passkey"])
    func `a device that needs authentication refuses an agent without input and output`(pairing: String) throws {
        var bench = try Self.lock(", pairing: \(pairing)")
        bench.registerAgent("NoInputNoOutput")
        bench.call(Bench.device, "Pair")
        #expect(
            bench.wait(.seconds(1)) == [
                "fail 4 AuthenticationFailed: Authentication Failed", "(disconnected authentication)",
                "\(Self.dev) ServicesResolved=false Connected=false",
            ]
        )
    }

    @Test func `a wrong passkey ends the link and a refused request does not`() throws {
        var bench = try Self.lock(Self.shown)
        bench.registerAgent("KeyboardOnly")
        bench.call(Bench.device, "Pair")
        #expect(bench.answer(false) == ["fail 4 AuthenticationFailed: Authentication Failed"])
        #expect(bench.wait(.seconds(29)) == [])
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        bench.wait(.milliseconds(2))
        bench.answer(true, passkey: 654_321)
        #expect(
            bench.wait(.milliseconds(20)) == [
                "(disconnected authentication)", "\(Self.dev) ServicesResolved=false Connected=false",
                "fail 5 Failed: Operation failed with ATT error: 0x0e",
            ]
        )
    }

    @Test func `a peripheral can refuse to pair`() throws {
        var bench = try Self.lock(", pairing: refused")
        bench.registerAgent("NoInputNoOutput")
        bench.call(Bench.device, "Pair")
        #expect(
            bench.wait(.seconds(1)).prefix(2) == [
                "fail 4 AuthenticationFailed: Authentication Failed", "(disconnected authentication)",
            ]
        )
    }
}
