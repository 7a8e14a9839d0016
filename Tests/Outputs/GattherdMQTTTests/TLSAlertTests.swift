import Testing

@testable import GattherdMQTT

/// The alerts of a TLS server, as OpenSSL reports them: 0x100 is a warning, 0x200 is fatal.
@Suite struct TLSAlertTests {
    @Test func `only alerts that end the connection are errors`() {
        // A warning that the server does not know the name, as some servers of TLS 1.2 send it.
        #expect(!TLSAlert(0x100 | 112).isError)
        #expect(TLSAlert(0x200 | 112).isError)
        #expect(TLSAlert(0x200 | 116).isError)
        // The normal end.
        for level in [0x100, 0x200] as [Int32] { #expect(!TLSAlert(level).isError) }
    }
}
