/* `Relauncher` of relaunch.py in C: the way of a launch on tensors like those of an earlier one.

   tensors → torch's guards recognize them → addresses and stream → the launch kept for these
           → cuStreamIsCapturing, cuLaunchKernelEx by their addresses, while other threads may run

   What it does not recognize it leaves alone; Python then goes the long way. It calls torch by
   functions for Python, and needs no header of torch or CUDA. Threads may share an object. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "free-threaded Python launches by relaunch.py: the lock keeps what is looked up here alive"
#endif

#include <stdint.h>
#include <string.h>

#define INTERFACE 3 /* that of relaunch.py */
#define MOST 24     /* addresses of a launch, and its stream; Python launches what has more */
#define PLACES 32   /* launches that were met lately, each at the place that its words tell */

/* CUresult cuLaunchKernelEx(config, function, parameters, extra) */
typedef int (*LaunchKernel)(const void *, void *, void **, void **);
/* CUresult cuStreamIsCapturing(stream, status); the status is 0 of a stream that none captures */
typedef int (*IsCapturing)(void *, int *);

/* A launch's key as numbers: the addresses of its tensors and workspaces, and its stream. */
typedef struct {
    Py_ssize_t count;
    unsigned long long words[MOST];
} Key;

typedef struct {
    Key key;
    PyObject *known;
} Place;

/* What Python gives beside addresses. */
#define OBJECTS(each)                                                                              \
    each(launches) each(failed) each(recognizes) each(recognizes_inputs) each(make)                \
    each(stream_of) each(index) each(workspaces) each(count_up)
#define NAME(name) #name,
#define FOUND_IN(name) , &name
#define DECLARE(name) PyObject *name;
#define HOLD(name) self->name = Py_NewRef(name);
#define VISIT(name) Py_VISIT(self->name);
#define CLEAR(name) Py_CLEAR(self->name);

typedef struct {
    PyObject_HEAD
    LaunchKernel launch;
    IsCapturing captures;
    void *function;
    OBJECTS(DECLARE)
    PyTypeObject *type; /* of the tensors whose addresses `address_of` gives, or NULL */
    PyCFunction address_of;
    Place lately[PLACES];
} Relauncher;

static PyObject *data_ptr; /* the name of the method */

/* 1, 0, or -1 with an exception; takes the reference. */
static int truth_of(PyObject *found)
{
    int truth = found == NULL ? -1 : PyObject_IsTrue(found);
    Py_XDECREF(found);
    return truth;
}

/* The stream's handle, a new reference; NULL where Python must find it, or with an exception. */
static PyObject *stream_for(Relauncher *self, PyObject *stream)
{
    if (stream == Py_None && self->stream_of != Py_None)
        return PyObject_CallOneArg(self->stream_of, self->index);
    return PyLong_CheckExact(stream) ? Py_NewRef(stream) : NULL;
}

/* Adds a number to the key and takes the reference; 1, or 0 where it is none that fits, or with an
   exception. */
static int add(Key *key, PyObject *number)
{
    int fits = number != NULL && PyLong_CheckExact(number) && key->count < MOST;
    if (fits) {
        unsigned long long word = PyLong_AsUnsignedLongLong(number);
        fits = word != (unsigned long long)-1 || !PyErr_Occurred();
        if (!fits)
            PyErr_Clear();
        key->words[key->count] = word;
        key->count += fits;
    }
    Py_XDECREF(number);
    return fits;
}

/* Finds the function behind `data_ptr` of a type's instances, if it has none in Python. */
static void meet_type(Relauncher *self, PyTypeObject *type)
{
    PyObject *method = PyObject_GetAttr((PyObject *)type, data_ptr);
    PyMethodDef *found = NULL;
    if (method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type))
        found = ((PyMethodDescrObject *)method)->d_method;
    if (found != NULL && found->ml_flags == METH_NOARGS) {
        self->address_of = found->ml_meth;
        Py_XSETREF(self->type, (PyTypeObject *)Py_NewRef(type));
    }
    Py_XDECREF(method);
    PyErr_Clear();
}

/* The tensor's address, a new reference, or NULL with an exception. To look for the method each
   time takes as long as to call it. */
static PyObject *address_of(Relauncher *self, PyObject *tensor)
{
    if (Py_TYPE(tensor) != self->type)
        meet_type(self, Py_TYPE(tensor));
    if (Py_TYPE(tensor) == self->type)
        return self->address_of(tensor, NULL);
    return PyObject_CallMethodNoArgs(tensor, data_ptr);
}

/* Adds the addresses of the workspaces; 1, or 0 as `add` does. */
static int add_workspaces(Relauncher *self, Key *key, PyObject *stream)
{
    if (self->workspaces == Py_None)
        return 1;
    PyObject *found = PyObject_CallOneArg(self->workspaces, stream);
    if (found == NULL)
        return 0;
    int fits = PyTuple_Check(found);
    if (!fits)
        PyErr_SetString(PyExc_TypeError, "workspaces must be a tuple");
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(found); i++)
        fits = add(key, Py_NewRef(PyTuple_GET_ITEM(found, i)));
    Py_DECREF(found);
    return fits;
}

/* Makes the key of tensors on this stream; 1, or 0 as `add` does. */
static int make_key(Relauncher *self, Key *key, PyObject *tensors, PyObject *stream)
{
    PyObject *handle = stream_for(self, stream);
    if (handle == NULL)
        return 0;
    int fits = 1;
    key->count = 0;
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(tensors); i++)
        fits = add(key, address_of(self, PyTuple_GET_ITEM(tensors, i)));
    fits = fits && add_workspaces(self, key, handle) && add(key, Py_NewRef(handle));
    Py_DECREF(handle);
    return fits;
}

/* (address, …, workspace, …, stream), the key in `launches`. */
static PyObject *as_tuple(const Key *key)
{
    PyObject *words = PyTuple_New(key->count);
    for (Py_ssize_t i = 0; words != NULL && i < key->count; i++) {
        PyTuple_SET_ITEM(words, i, PyLong_FromUnsignedLongLong(key->words[i]));
        if (PyTuple_GET_ITEM(words, i) == NULL)
            Py_CLEAR(words);
    }
    return words;
}

/* What is kept for the key, a new reference; NULL where nothing is, or with an exception. */
static PyObject *find(Relauncher *self, const Key *key)
{
    size_t bytes = (size_t)key->count * sizeof *key->words;
    uint64_t mixed = 0;
    for (Py_ssize_t i = 0; i < key->count; i++)
        mixed = (mixed ^ key->words[i]) * 0x9E3779B97F4A7C15u;
    Place *place = &self->lately[(mixed >> 32) % PLACES];
    int met = place->known != NULL && place->key.count == key->count;
    if (met && memcmp(place->key.words, key->words, bytes) == 0)
        return Py_NewRef(place->known);
    PyObject *words = as_tuple(key);
    if (words == NULL)
        return NULL;
    PyObject *known = Py_XNewRef(PyDict_GetItemWithError(self->launches, words));
    Py_DECREF(words);
    if (known != NULL) {
        PyObject *before = place->known;
        place->key = *key;
        place->known = Py_NewRef(known);
        Py_XDECREF(before);
    }
    return known;
}

/* Whether a graph may capture the stream. */
static int may_capture(IsCapturing captures, unsigned long long stream)
{
    int status = 0;
    return captures((void *)(uintptr_t)stream, &status) != 0 || status != 0;
}

/* Launches; 1, 0 where a graph may capture the stream and `asks`, or -1 with an exception. `known`
   is (parameters, config, …), both as addresses. */
static int launch_known(Relauncher *self, PyObject *known, unsigned long long stream, int asks)
{
    if (!PyTuple_Check(known) || PyTuple_GET_SIZE(known) < 2) {
        PyErr_SetString(PyExc_TypeError, "a launch must be kept as a tuple of addresses");
        return -1;
    }
    void *parameters = PyLong_AsVoidPtr(PyTuple_GET_ITEM(known, 0));
    void *config = PyLong_AsVoidPtr(PyTuple_GET_ITEM(known, 1));
    int status = 0, captured = 0;
    if (PyErr_Occurred())
        return -1;
    Py_BEGIN_ALLOW_THREADS
    captured = asks && may_capture(self->captures, stream);
    if (!captured)
        status = self->launch(config, self->function, parameters, NULL);
    Py_END_ALLOW_THREADS
    if (status == 0)
        return !captured;
    PyObject *done = PyObject_CallFunction(self->failed, "iO", status, known);
    Py_XDECREF(done);
    return done == NULL ? -1 : 1;
}

/* Launches on tensors that were recognized; 1, 0 where nothing is kept for them or a graph captures
   torch's stream, or -1. */
static int launch_on(Relauncher *self, PyObject *tensors, PyObject *stream)
{
    Key key;
    int asks = stream == Py_None && self->captures != NULL;
    PyObject *known = make_key(self, &key, tensors, stream) ? find(self, &key) : NULL;
    if (known == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int done = launch_known(self, known, key.words[key.count - 1], asks);
    Py_DECREF(known);
    return done;
}

static int recognize_and_launch(Relauncher *self, PyObject *tensors, PyObject *stream)
{
    int known = truth_of(PyObject_CallObject(self->recognizes, tensors));
    return known == 1 ? launch_on(self, tensors, stream) : known;
}

/* (input, …, out), a new reference */
static PyObject *with_last(PyObject *inputs, PyObject *out)
{
    Py_ssize_t count = PyTuple_GET_SIZE(inputs);
    PyObject *tensors = PyTuple_New(count + 1);
    if (tensors == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(tensors, i, Py_NewRef(PyTuple_GET_ITEM(inputs, i)));
    PyTuple_SET_ITEM(tensors, count, Py_NewRef(out));
    return tensors;
}

static int check_call(PyObject *const *given, Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted && PyTuple_CheckExact(given[0]))
        return 1;
    PyErr_Format(PyExc_TypeError, "a tuple and %zd more must be given", wanted - 1);
    return 0;
}

static PyObject *as_bool(int done)
{
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *relauncher_launch(Relauncher *self, PyObject *const *given, Py_ssize_t count)
{
    if (!check_call(given, count, 2))
        return NULL;
    return as_bool(recognize_and_launch(self, given[0], given[1]));
}

static PyObject *relauncher_launch_into(Relauncher *self, PyObject *const *given, Py_ssize_t count)
{
    if (!check_call(given, count, 3))
        return NULL;
    PyObject *tensors = with_last(given[0], given[1]);
    if (tensors == NULL)
        return NULL;
    int done = recognize_and_launch(self, tensors, given[2]);
    Py_DECREF(tensors);
    if (done == 1) {
        PyObject *written = PyTuple_Pack(1, given[1]);
        PyObject *counted = written ? PyObject_CallOneArg(self->count_up, written) : NULL;
        done = counted == NULL ? -1 : 1;
        Py_XDECREF(written);
        Py_XDECREF(counted);
    }
    return as_bool(done);
}

static PyObject *relauncher_launch_new(Relauncher *self, PyObject *const *given, Py_ssize_t count)
{
    if (!check_call(given, count, 2))
        return NULL;
    if (self->make == Py_None || self->recognizes_inputs == Py_None)
        Py_RETURN_NONE;
    int done = truth_of(PyObject_CallObject(self->recognizes_inputs, given[0]));
    if (done != 1)
        return done < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *out = PyObject_CallNoArgs(self->make);
    if (out == NULL || out == Py_None)
        return out;
    PyObject *tensors = with_last(given[0], out);
    done = tensors == NULL ? -1 : launch_on(self, tensors, given[1]);
    Py_XDECREF(tensors);
    if (done == 1)
        return out;
    Py_DECREF(out);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *relauncher_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"launch", "function", "captures", OBJECTS(NAME) NULL};
    unsigned long long launch, function, captures;
    OBJECTS(DECLARE)
    if (!PyArg_ParseTupleAndKeywords(args, named, "KKKOOOOOOOOO", names, &launch, &function,
                                     &captures OBJECTS(FOUND_IN)))
        return NULL;
    if (!PyDict_Check(launches))
        return PyErr_Format(PyExc_TypeError, "launches must be a dict");
    Relauncher *self = (Relauncher *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->launch = (LaunchKernel)(uintptr_t)launch;
    self->captures = (IsCapturing)(uintptr_t)captures;
    self->function = (void *)(uintptr_t)function;
    OBJECTS(HOLD)
    return (PyObject *)self;
}

static int relauncher_traverse(Relauncher *self, visitproc visit, void *arg)
{
    OBJECTS(VISIT)
    Py_VISIT(self->type);
    for (Place *place = self->lately; place < self->lately + PLACES; place++)
        Py_VISIT(place->known);
    return 0;
}

static int relauncher_clear(Relauncher *self)
{
    OBJECTS(CLEAR)
    Py_CLEAR(self->type);
    for (Place *place = self->lately; place < self->lately + PLACES; place++)
        Py_CLEAR(place->known);
    return 0;
}

static void relauncher_dealloc(Relauncher *self)
{
    PyObject_GC_UnTrack(self);
    relauncher_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef relauncher_methods[] = {
    {"launch", (PyCFunction)(void (*)(void))relauncher_launch, METH_FASTCALL, NULL},
    {"launch_into", (PyCFunction)(void (*)(void))relauncher_launch_into, METH_FASTCALL, NULL},
    {"launch_new", (PyCFunction)(void (*)(void))relauncher_launch_new, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject relauncher_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tilewright.runtime._relaunch.Relauncher",
    .tp_basicsize = sizeof(Relauncher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Launches on tensors like those of an earlier one; relaunch.py says what each method does.",
    .tp_new = relauncher_new,
    .tp_dealloc = (destructor)relauncher_dealloc,
    .tp_traverse = (traverseproc)relauncher_traverse,
    .tp_clear = (inquiry)relauncher_clear,
    .tp_methods = relauncher_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_relaunch", .m_doc = "`Relauncher` of relaunch.py in C.", .m_size = -1,
};

PyMODINIT_FUNC PyInit__relaunch(void)
{
    data_ptr = PyUnicode_InternFromString("data_ptr");
    if (data_ptr == NULL || PyType_Ready(&relauncher_type) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
    if (PyModule_AddObjectRef(made, "Relauncher", (PyObject *)&relauncher_type) < 0 ||
        PyModule_AddIntConstant(made, "INTERFACE", INTERFACE) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
