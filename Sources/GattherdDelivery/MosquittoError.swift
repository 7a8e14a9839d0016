import CMosquitto
import Glibc

/// libmosquitto said no.
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
        case MOSQ_ERR_ERRNO: errno == ECONNRESET || errno == EPIPE || errno == EPROTO
        default: false
        }
    }

    var description: String {
        code == MOSQ_ERR_ERRNO.rawValue
            ? unsafe String(cString: strerror(errno)) : unsafe String(cString: mosquitto_strerror(code))
    }

    static func check(_ code: Int32) throws(MosquittoError) {
        guard code == MOSQ_ERR_SUCCESS.rawValue else { throw MosquittoError(code: code) }
    }
}
