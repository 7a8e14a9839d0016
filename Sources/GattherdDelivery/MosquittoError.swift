import CMosquitto
import Glibc

/// libmosquitto, or what we do in its place, said no.
struct MosquittoError: Error, Hashable, CustomStringConvertible {
    /// One of `mosq_err_t`.
    let code: Int32
    /// What `errno` was, when the code says to look there.
    let errno: Int32

    /// To be made at once, for `errno` does not keep.
    init(code: Int32) {
        errno = Glibc.errno
        self.code = code
    }

    init(_ code: mosq_err_t) {
        self.init(code: code.rawValue)
    }

    /// The other side closed or reset the connection.
    var isEndOfConnection: Bool {
        switch mosq_err_t(code) {
        case MOSQ_ERR_CONN_LOST, MOSQ_ERR_TLS: true
        case MOSQ_ERR_ERRNO: errno == 0 || errno == ECONNRESET || errno == EPIPE || errno == EPROTO
        default: false
        }
    }

    var description: String {
        switch mosq_err_t(code) {
        // libmosquitto 2.0.11 knows no words for these two.
        case MOSQ_ERR_MALFORMED_PACKET: "Malformed packet."
        case MOSQ_ERR_KEEPALIVE: "A ping was not answered in time."
        // So it calls an end in the midst of a packet.
        case MOSQ_ERR_ERRNO where errno == 0: unsafe String(cString: mosquitto_strerror(MOSQ_ERR_CONN_LOST.rawValue))
        case MOSQ_ERR_ERRNO: unsafe String(cString: strerror(errno))
        default: unsafe String(cString: mosquitto_strerror(code))
        }
    }

    static func check(_ code: Int32) throws(MosquittoError) {
        guard code == MOSQ_ERR_SUCCESS.rawValue else { throw MosquittoError(code: code) }
    }
}
