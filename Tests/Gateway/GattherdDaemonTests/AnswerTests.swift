import GattherdBluetooth
import GattherdDaemon
import GattherdModel
import GattherdSync
import Testing

/// Connection tasks, and controls that wait for the device's response.
@Suite(.timeLimit(.minutes(1))) struct AnswerTests {
    private static func rule(timeout: Duration = .seconds(30)) throws -> ResponseRule {
        let cases = [
            ResponseRule.Case(try #require(BytePattern("80 05 01")), .success),
            ResponseRule.Case(try #require(BytePattern("80 05 02")), .refusal("not supported")),
            ResponseRule.Case(try #require(BytePattern("80 05 ??")), .refusal("refused")),
        ]
        return ResponseRule(characteristic: 0xBBBB, cases: cases, timeout: timeout)
    }

    private func profile(_ tasks: ConnectionTaskDescriptor...) -> OctetProfile {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.tasks = tasks
        return profile
    }

    private func calls(_ bench: Bench) -> [FakeCentral.Call] {
        let others: [FakeCentral.Call] = [.startDiscovery, .stopDiscovery, .disconnect, .unsubscribe, .watch]
        return bench.central.calls.state.filter { !others.contains($0) }
    }

    private func write(_ answer: ResponseRule?, isRequired: Bool = false) -> ConnectionTaskDescriptor {
        let action = ConnectionTaskDescriptor.Action.write([5], isAcknowledged: true, answer: answer)
        return ConnectionTaskDescriptor(characteristic: 0xBBBB, action: action, isRequired: isRequired)
    }

    @Test func `tasks run after the subscriptions and before the reads`() async throws {
        let bench = try Bench([profile(write(try Self.rule()))])
        bench.central.state.withLock { $0.answers = [[5]: [0x80, 5, 1]] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(calls(bench) == [.connect, .subscribe, .subscribe, .write([5]), .read])
        #expect(await bench.store.events.allSatisfy { $0.kind != "task" })
    }

    @Test func `a task writes the current time, and fails if a number does not fit`() async throws {
        let actions = try ["AA {now:u32be}", "BB {year:u8}"].map { text in
            ConnectionTaskDescriptor.Action.write(try #require(WriteTemplate(text)), isAcknowledged: true, answer: nil)
        }
        let tasks = actions.map { ConnectionTaskDescriptor(characteristic: 0xBBBB, action: $0) }
        let bench = try Bench([profile(tasks[0], tasks[1])])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        let writes = calls(bench).compactMap { call in if case .write(let octets) = call { octets } else { nil } }
        #expect(writes == [[0xAA, 0, 0, 0, 0]])
        #expect(await bench.store.events.contains { $0.kind == "task" })
    }

    @Test func `a connection task can only listen; one without its characteristic is skipped`() async throws {
        let listen = ConnectionTaskDescriptor(characteristic: 0xBBBB, action: .listen)
        let elsewhere = ConnectionTaskDescriptor(service: 0xCCCC, characteristic: 0xBBBB, action: .listen)
        let bench = try Bench([profile(listen, elsewhere)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(calls(bench) == [.connect, .subscribe, .subscribe, .read])
        #expect(bench.central.state.withLock { $0.sinks.count } == 0)
    }

    @Test(arguments: [
        ([0x80, 5, 2] as [UInt8], "the device says: not supported"), ([0x80, 5, 9], "the device says: refused"),
    ])
    func `a refused task is reported and the device is served`(
        answer: [UInt8],
        reason: String
    ) async throws {
        let bench = try Bench([profile(write(try Self.rule()))])
        bench.central.state.withLock { $0.answers = [[5]: answer] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(await bench.store.events.contains { $0.kind == "task" && $0.detail.contains(reason) })
    }

    @Test func `an answer of a characteristic that does not notify is reported with advice`() async throws {
        let bench = try Bench([profile(write(try Self.rule(timeout: .milliseconds(1))))])
        bench.central.state.withLock { state in
            state.tables = state.tables.mapValues { table in
                table.map { one in
                    RemoteCharacteristic(
                        peripheral: one.peripheral,
                        service: one.service,
                        uuid: one.uuid,
                        handle: one.handle,
                        properties: [.read, .write]
                    )
                }
            }
        }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(await bench.store.events.contains { $0.detail.contains("bbbb: it does not notify; name the char") })
    }

    @Test func `a task that the end of the link interrupts is not reported`() async throws {
        let bench = try Bench([profile(write(try Self.rule(timeout: .seconds(3600))))])
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .write([5]))
            bench.central.tell.yield(.disconnected(bench.id))
            // The next session begins after the end of the first one.
            await bench.central.wait(for: .write([5]), times: 2)
        }
        #expect(await bench.store.events.allSatisfy { $0.kind != "task" })
    }

    @Test func `a refused required task fails the link`() async throws {
        let bench = try Bench([profile(write(try Self.rule(timeout: .milliseconds(1)), isRequired: true))])
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .connect, times: 2)
        }
        #expect(bench.announcer.statuses.state["strap"]?.contains(.ready) == false)
    }

    @Test func `a device without the characteristic of a required task fails the link`() async throws {
        let task = ConnectionTaskDescriptor(service: 0xCCCC, characteristic: 0xBBBB, action: .listen, isRequired: true)
        let bench = try Bench([profile(task)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
        }
    }

    @Test(
        arguments: [
            ([0x80, 5, 1] as [UInt8], Result<ControlValue, ControlError>.success(.integer(5))),
            ([0x80, 5, 2], .failure(.refused("the device says: not supported"))),
            ([0x80, 6, 1], .failure(.timedOut)), ([0x80], .failure(.timedOut)),
        ]
    )
    func `a control is set when the device confirms it`(
        answer: [UInt8],
        result: Result<ControlValue, ControlError>
    ) async throws {
        var profile = profile()
        let rule = try Self.rule(timeout: result == .failure(.timedOut) ? .milliseconds(10) : .seconds(30))
        profile.controls = [
            ControlDescriptor(name: "power", kind: .integer(0...255), characteristic: 0xBBBB, answer: rule)
        ]
        let bench = try Bench([profile])
        bench.central.state.withLock { $0.answers = [[5]: answer] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            let request = ControlRequest(device: "strap", control: "power", value: .integer(5))
            #expect(await bench.supervisor.controls.set(request) == result)
        }
        #expect(calls(bench).filter { $0 == .subscribe }.count == 2)
    }

    @Test func `a control stops waiting for its response when the link ends`() async throws {
        var profile = profile()
        let rule = try Self.rule(timeout: .seconds(3600))
        profile.controls = [
            ControlDescriptor(name: "power", kind: .integer(0...255), characteristic: 0xBBBB, answer: rule)
        ]
        let bench = try Bench([profile])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            async let answer = bench.supervisor.controls.set(
                ControlRequest(device: "strap", control: "power", value: .integer(5))
            )
            await bench.central.wait(for: .write([5]))
            bench.central.tell.yield(.disconnected(bench.id))
            #expect(await answer == .failure(.timedOut))
        }
    }

    @Test(arguments: [
        (BluetoothError(.notConnected, "the link was lost"), 1), (BluetoothError(.att(0x0E), "unlikely"), 1),
        (BluetoothError(.other, "Operation failed"), 1), (BluetoothError(.busy, "in progress"), 2),
        (
            BluetoothError(
                .notConnected,
                "Not connected (org.bluez.Error.Failed)",
                original: BluetoothError.Original(name: "org.bluez.Error.Failed", message: "Not connected")
            ), 2
        ),
    ])
    func `a trigger that the device may have received is not written again`(
        error: BluetoothError,
        writes: Int
    ) async throws {
        var profile = profile()
        profile.controls = [ControlDescriptor(name: "reset", kind: .trigger, characteristic: 0xBBBB)]
        let bench = try Bench([profile])
        bench.central.state.withLock { $0.writeErrors = [error] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            let request = ControlRequest(device: "strap", control: "reset", value: .trigger)
            let answer = await bench.supervisor.controls.set(request)
            #expect(answer == (writes == 1 ? .failure(.timedOut) : .success(.trigger)))
        }
        #expect(calls(bench).filter { $0 == .write([1]) }.count == writes)
    }

    @Test func `a task resumes after the device's newest value, also on the next link`() async throws {
        var task = write(nil)
        task.resume = ResumeRule(stream: "one", metric: 0, prefix: [1, 3], width: 2)
        let bench = try Bench([profile(task)])
        bench.central.state.withLock { $0.readValue = [7] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.notify([0xFE])
            await bench.store.wait { $0.readings.count == 2 }
            bench.central.tell.yield(.disconnected(bench.id))
            await bench.announcer.wait(for: "strap", .ready, times: 2)
        }
        #expect(
            calls(bench).filter { $0 == .write([5]) || $0 == .write([1, 3, 0xFF, 0]) } == [
                .write([5]), .write([1, 3, 0xFF, 0]),
            ]
        )
    }

    @Test(
        arguments: [
            (0, 1, [9, 1] as [UInt8]?), (0x00FF, 2, [9, 0, 1]), (0xFFFF, 2, nil), (255, 1, nil), (-2, 1, nil),
            (.max, 7, nil),
            (5, 0, nil), (5, 8, nil),
        ] as [(Int64, Int, [UInt8]?)]
    )
    func `the resume value is written into its placeholder`(newest: Int64, width: Int, octets: [UInt8]?) {
        #expect(ResumeRule(stream: "x", metric: 0, prefix: [9], width: width).octets(after: newest) == octets)
    }

    @Test func `a pattern matches the start of a response, with wildcards`() throws {
        let pattern = try #require(BytePattern("80 ?? 01"))
        #expect(pattern.fits([0x80, 7, 1]) && pattern.fits([0x80, 9, 1, 5]))
        #expect(!pattern.fits([0x80, 7]) && !pattern.fits([0x81, 7, 1]) && !pattern.fits([]))
        #expect(BytePattern("") == nil && BytePattern("8") == nil && BytePattern("80 ?") == nil)
        let digits = try #require(BytePattern("4? ?C 80??"))
        #expect(digits.fits([0x4F, 0xAC, 0x80, 9]) && digits.description == "4? ?c 80 ??")
        #expect(!digits.fits([0x5F, 0xAC, 0x80, 9]) && !digits.fits([0x4F, 0xAD, 0x80, 9]))
        #expect(BytePattern("???") == nil && BytePattern("?-") == nil && BytePattern("?\u{FF11}") == nil)
        // Separators alone are no bytes: such a pattern would fit all values.
        #expect(BytePattern("-") == nil && BytePattern("80 : 01") == nil)
    }
}
