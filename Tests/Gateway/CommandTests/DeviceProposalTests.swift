import GattherdConfig
import GattherdGATT
import GattherdGateway
import Testing

@testable import gattherd

@Suite struct DeviceProposalTests {
    private static let address = BluetoothAddress(value: 0xA4C1_3811_2233)

    private static let names: [(texts: [String], taken: [String], name: String)] = [
        (["Govee H5075", "GVH5075_0123"], [], "govee-h5075"), (["", "Strap"], [], "strap"),
        (["…", "✓"], [], "device"), (["Strap"], ["strap"], "strap-2"), (["A / B (c)"], [], "a-b-c"),
        (["Strap"], ["strap", "strap-2"], "strap-3"), (["bridge"], [], "bridge-2"),
        ([String(repeating: "abc ", count: 30)], [], "abc-abc-abc-abc-abc-abc-abc-abc-abc-abc"),
    ]

    @Test(arguments: names)
    func `the proposed name is a free slug`(texts: [String], taken: [String], name: String) {
        #expect(DeviceProposal.name(from: texts, taken: Set(taken)) == name)
    }

    @Test func `the lines are a configuration of the device`() throws {
        var proposal = DeviceProposal(name: "123", address: Self.address, profiles: ["govee", "null"])
        (proposal.model, proposal.keyFile) = ("Govee H5075", "/etc/it's: a #key")
        let environment = ConfigEnvironment(variables: [:], hostName: "h")
        let source = ConfigSource(name: "a.yaml", text: proposal.text)
        let device = try #require(try Configuration.parse([source], in: environment, outputs: []).devices.first)
        #expect(device.name.value == "123")
        #expect(device.address.value == Self.address)
        #expect(device.profiles?.map(\.value) == ["govee", "null"])
        #expect(device.bindKeyFile?.value == "/etc/it's: a #key")
    }

    @Test func `a device that every matching profile serves needs no list of profiles`() {
        let text = DeviceProposal(name: "strap", address: Self.address, profiles: []).text
        #expect(text == "devices:\n  - name: strap\n    address: A4:C1:38:11:22:33\n")
    }
}
