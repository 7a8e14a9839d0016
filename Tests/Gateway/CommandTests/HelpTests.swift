import FoundationEssentials
import GattherdModel
import Testing

@testable import gattherd

@Suite struct HelpTests {
    @Test(arguments: [40, 80, 100])
    func `help is wrapped to the width`(width: Int) {
        for command in Gattherd.commands {
            let lines = HelpText(command, width: width).text.split(separator: "\n")
            let prose = lines.filter { !$0.hasPrefix(" ") && !$0.hasPrefix("Usage: ") && $0 != command.summary }
            #expect(prose.allSatisfy { $0.count <= width }, "\(command.name)")
        }
    }

    @Test func `the help of each command has usage, options and exit codes`() {
        for command in Gattherd.commands {
            let text = HelpText(command, width: 80).text
            #expect(text.hasPrefix(command.summary + "\n\nUsage: gattherd \(command.name)"))
            for option in command.options { #expect(text.contains("  --\(option.name)")) }
            #expect(text.contains("\nExit codes:\n  0   done\n"))
        }
    }

    @Test func `each command with JSON output describes it`() {
        let commands = Gattherd.commands.filter { $0.options.contains { $0.name == "json" } }
        #expect(commands.count >= 5)
        for command in commands where !command.name.hasPrefix("profile ") {
            #expect(!command.json.isEmpty, "\(command.name)")
        }
    }

    @Test func `each key of the status is described`() throws {
        var status = DaemonStatus(
            version: "1",
            gateway: "lab",
            started: Timestamp(microseconds: 0),
            history: .init(at: "g.db", seq: 1)
        )
        status.history.error = "full"
        status.configuration = .init(restartNeeded: ["mqtt"], error: "wrong", unread: true)
        var output = DaemonStatus.Output("mqtt", state: .waiting, target: "mqtt://b:1883")
        (output.error, output.nextTry) = ("away", "t")
        status.outputs = [output]
        var adapter = DaemonStatus.Adapter(address: "a", name: "hci0", isPowered: true, isDiscovering: true)
        (adapter.slots, adapter.lastRecovery, adapter.waiting) = (5, "powerCycle", 1)
        status.adapters = [adapter]
        var link = LinkStatus(device: "strap", state: .ready, since: Timestamp(microseconds: 0))
        (link.reason, link.detail, link.nextRetry) = (.remote, "gone", Timestamp(microseconds: 1))
        (link.adapter, link.rssi) = ("a", -60)
        var device = DaemonStatus.Device(link, address: "b", profiles: ["heart-rate"])
        (device.lastReading, device.lastHeard) = ("t", "t")
        (device.model, device.suggestedProfile) = ("Govee H5075", "govee")
        (device.title, device.area, device.note, device.onlyAdvertises) = ("Strap", "Gym", "spare", true)
        status.devices = [device]
        let json = String(decoding: try JSONEncoder().encode(status), as: UTF8.self)
        let keys = Set(json.matches(of: /"([a-z_]+)":/).map { String($0.1) })
        #expect(keys.count > 30)
        for key in keys { #expect(CommandSpec.status.json.contains("\"\(key)\""), "\(key)") }
    }

    @Test func `each key of an explanation and of a finding is described`() {
        let event = LifecycleEvent(time: Timestamp(microseconds: 0), device: "strap", kind: "odd", detail: "{}")
        let sources = DeviceExplanation.Sources(
            device: "strap",
            address: "b",
            events: [event],
            connectTimeout: .seconds(1)
        )
        let story = JSONWriter.bytes {
            DeviceExplanation(sources, now: Timestamp(microseconds: 1)).writeJSON(to: &$0)
        }
        let finding = JSONWriter.bytes { DoctorFinding("bus", .error, "away").writeJSON(to: &$0) }
        for (octets, help) in [(story, CommandSpec.why.json), (finding, CommandSpec.doctor.json)] {
            let keys = String(decoding: octets, as: UTF8.self).matches(of: /"([a-z_]+)":/).map { $0.1 }
            #expect(!keys.isEmpty)
            for key in keys { #expect(help.contains("\"\(key)\""), "\(key)") }
        }
    }

    @Test func `indented lines are not wrapped`() {
        var command = CommandSpec.status
        command.details = "one two\nthree\n\n  as   it is\n\nfour"
        #expect(HelpText(command, width: 40).text.contains("one two three\n\n  as   it is\n\nfour\n"))
    }
}
