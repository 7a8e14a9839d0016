import GattherdGATT
import Testing

@Suite struct BluetoothAddressTests {
    @Test(arguments: [
        "C0:FF:EE:00:00:01", "c0:ff:ee:00:00:01", "C0-FF-EE-00-00-01", "c0_ff_ee_00_00_01", "C0FFEE000001",
    ])
    func `any usual notation of an address is read`(text: String) {
        #expect(BluetoothAddress(anyNotation: text)?.description == "C0:FF:EE:00:00:01")
    }

    @Test(arguments: ["", "strap", "C0FFEE00001", "C0FFEE00000G", "C0:FF:EE:00:1", "C0:FF:EE:00:00:0é", "caféafé123"])
    func `texts in no notation of an address are refused`(text: String) {
        #expect(BluetoothAddress(anyNotation: text) == nil)
    }

    @Test func `files have addresses with colons only`() {
        #expect(BluetoothAddress("c0:ff:ee:00:00:01") != nil)
        #expect(BluetoothAddress("C0-FF-EE-00-00-01") == nil && BluetoothAddress("C0FFEE000001") == nil)
    }
}
